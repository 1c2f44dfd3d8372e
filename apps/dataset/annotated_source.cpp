#include "apps/dataset/annotated_source.h"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/annotated_splits.h"
#include "apps/dataset/files.h"
#include "data/label_file.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {
namespace {

namespace labels = data::annotations;

// Reads all items of a split. Those that cannot be used are listed.
labels::ReadSplit read_items(const labels::LabelSet& set, const labels::LabelFiles& files, int64_t threads) {
  labels::ReadSplit read;
  read.images.resize(files.items.size());
  std::mutex mutex;
  for_each_index(files.items.size(), threads, files.name + " annotations", [&](size_t i) {
    if (cli::stop_requested()) throw Error("stopped");
    try {
      read.images[i] = set.read(files.items[i]);
    } catch (const data::BadRecordError& error) {
      const std::lock_guard lock(mutex);
      read.unusable.push_back(error.record());
    }
  });
  std::ranges::sort(read.unusable, {}, &data::BadRecord::file);
  return read;
}

}  // namespace

void AnnotationFlags::declare(cli::FlagSet& flags) {
  flags.add_choice("from", from, {"coco", "voc", "yolo", "labelme"},
                   "format of the annotations. coco: layouts of COCO, CVAT and Roboflow; voc: PASCAL VOC's XML files; "
                   "yolo: data.yaml of Ultralytics, or darknet's files; labelme: JSON files of labelme");
  flags.add("year", year, "year to convert if there are COCO annotations of several years, e.g. 2017");
  flags.add("classes", classes,
            "file with a class per line, in the order of their ids; objects of other classes are left out. Default: "
            "the classes of YOLO's files, else all, by name");
  flags.add_choice("voc_boxes", voc_boxes, {"inclusive", "one_based", "zero_based"},
                   "coordinates of VOC's boxes. inclusive: PASCAL VOC's, pixels from 1 and xmax inside of the box; "
                   "one_based: pixels from 1, xmax - xmin is the width; zero_based: pixels from 0, likewise");
  flags.add_choice("difficult", difficult, {"crowd", "keep", "drop"},
                   "VOC's difficult objects. crowd: marked by iscrowd, so that they are neither trained on nor counted "
                   "as missed; keep: objects like others; drop: left out");
  flags.add("masks", masks, "store object masks, in records as PNG and as polygons or run-length encoding");
  flags.add("strict", strict, "reject faulty annotations and list all faults, instead of dropping faulty objects");
}

labels::LabelOptions AnnotationFlags::label_options() const {
  labels::LabelOptions options{.masks = masks};
  options.voc_boxes = voc_boxes == "inclusive"   ? labels::VocBoxes::inclusive
                      : voc_boxes == "one_based" ? labels::VocBoxes::one_based
                                                 : labels::VocBoxes::zero_based;
  options.difficult = difficult == "crowd"  ? labels::Difficult::crowd
                      : difficult == "keep" ? labels::Difficult::keep
                                            : labels::Difficult::drop;
  if (classes.empty()) return options;
  for (const data::TextLine& line : data::read_lines(classes))
    // Entries of labelme's lists that are no classes.
    if (line.text != "__ignore__" && line.text != "_background_") options.classes.push_back(line.text);
  return options;
}

std::vector<AnnotatedSource> AnnotationFlags::open(const std::string& input, int64_t threads) const {
  std::vector<AnnotatedSource> splits = from == "coco" ? open_coco(input) : open_labels(input, threads);
  for (const AnnotatedSource& split : splits) {
    cli::print_notes(split.source->notices());
    if (split.source->size() + split.unusable.size() == 0)
      throw Error(Fault::data, split.annotations + ": lists no images that can be used");
  }
  return splits;
}

std::vector<AnnotatedSource> AnnotationFlags::open_coco(const std::string& input) const {
  std::vector<AnnotatedSource> splits;
  for (const AnnotatedSplit& files : find_splits(input, year)) {
    data::coco::AnnotationOptions options{.strict = strict, .stop = cli::stop_requested};
    if (!classes.empty()) options.classes = label_options().classes;
    auto source = data::open_coco(files.annotations, files.images, options);
    std::vector<data::BadRecord> unusable = source->unusable();
    splits.push_back({files.name, files.annotations, files.images, std::move(source), std::move(unusable)});
  }
  return splits;
}

std::vector<AnnotatedSource> AnnotationFlags::open_labels(const std::string& input, int64_t threads) const {
  const labels::LabelOptions options = label_options();
  const labels::LabelSet set = from == "voc"    ? labels::open_voc(input, options)
                               : from == "yolo" ? labels::open_yolo(input, options)
                                                : labels::open_labelme(input, options);
  std::vector<labels::ReadSplit> read;
  for (const labels::LabelFiles& files : set.splits) read.push_back(read_items(set, files, threads));
  std::vector<AnnotatedSource> splits;
  for (labels::LabelledSplit& split : labels::assemble(set, std::move(read), options)) {
    if (strict) split.annotations.findings.refuse(split.where);
    const std::string name = split.name, where = split.where;
    std::vector<data::BadRecord> unusable = split.unusable;
    splits.push_back({name, where, set.folder, labels::open_labels(set.folder, std::move(split)), std::move(unusable)});
  }
  return splits;
}

}  // namespace dtrain::dataset
