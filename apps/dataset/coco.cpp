// dtrain-data coco: converts detection data sets to TFRecord shards or to COCO's layout.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/dataset/annotated_source.h"
#include "apps/dataset/coco_files.h"
#include "apps/dataset/stored_image.h"
#include "apps/dataset/writing.h"
#include "data/detection_record.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {
namespace {

std::string record_of(const AnnotatedSource& split, uint64_t image, bool masks, Notices& notices) {
  const data::DetectionSource& source = *split.source;
  std::string place = source.locate(image).text();
  try {
    const auto reader = source.reader();
    const data::DetectionSample sample = reader->read(image, {});
    place = source.file_of(image);
    const StoredImage stored(sample, split.annotations);
    notices.warnings.add(place, stored.warning());
    if (stored.is_turned()) ++notices.turned;
    return data::detection_example({.encoded = stored.bytes(),
                                    .format = stored.format(),
                                    .filename = sample.name,
                                    .id = sample.id,
                                    .id_text = sample.id_text,
                                    .size = sample.size,
                                    .objects = sample.objects,
                                    .categories = source.categories()},
                                   masks);
  } catch (const Error& error) {
    const data::BadRecordError placed(place, error.what());
    if (error.fault() == Fault::data) throw placed;
    throw Error(error.fault(), placed.what());
  }
}

struct CocoFlags {
  CommonFlags common;
  AnnotationFlags annotations;
  std::string to = "records";
  int64_t shards = 256, validation_shards = 0;
  bool link_images = false;

  void declare(cli::FlagSet& flags) {
    common.reads_images = common.takes_folder = true;
    common.declare(flags, "folder of the data set, also as an argument: DIR");
    annotations.declare(flags);
    flags.add_choice("to", to, {"records", "json"},
                     "records: TFRecord shards; json: annotations/instances_SPLIT.json and the images in SPLIT/, in a "
                     "new folder");
    flags.add("link_images", link_images, "with --to=json, make symbolic links to the images instead of copies");
    flags.add("shards", shards, "train shards", {1, data::kMaxShards});
    flags.add("validation_shards", validation_shards, "validation shards; 0: an eighth of --shards",
              {0, data::kMaxShards});
  }

  // Readable images, and images known to be missing when the annotations are read: these count as bad records, too.
  data::Split records_of(const AnnotatedSource& split, Notices& notices) const {
    const bool trains = split.name == "train";
    const int64_t others = validation_shards == 0 ? std::max<int64_t>(shards / 8, 1) : validation_shards;
    const uint64_t count = split.source->size() + split.unusable.size();
    return {split.name == "val" ? "validation" : split.name, trains ? shards : others, count,
            [split, masks = annotations.masks, &notices,
             order = data::shuffled(count, static_cast<uint64_t>(common.seed))](uint64_t i) {
              const uint64_t image = order[i];
              if (image < split.source->size()) return record_of(split, image, masks, notices);
              const data::BadRecord& bad = split.unusable[image - split.source->size()];
              throw data::BadRecordError(bad.file, bad.reason);
            }};
  }

  int write_records(const std::vector<AnnotatedSource>& sources) const {
    Notices notices;
    std::vector<data::Split> splits;
    for (const AnnotatedSource& source : sources) splits.push_back(records_of(source, notices));
    const int code = write_set(common, splits, "", notices.warnings);
    if (const uint64_t turned = notices.turned; turned > 0)
      cli::print_message("note", concat(turned,
                                        " images were rotated by their EXIF orientation, to match their annotations, "
                                        "and re-encoded as JPEGs of quality 100"));
    return code;
  }
};

}  // namespace

int coco(const Arguments& argv) {
  CocoFlags values;
  cli::FlagSet flags(
      argv.front(), "DIR --output DIR [flags]",
      "Converts images with boxes and masks, annotated in COCO's format or that of PASCAL VOC, YOLO or labelme. Writes "
      "train-*-of-*, validation-*-of-* and test-*-of-* in the schema of TensorFlow's Object Detection API, or with "
      "--to=json files in COCO's layout. Reads of COCO annotations/instances_train<year>.json and "
      "instances_val<year>.json with images in train<year> or images/train<year>, or train/_annotations.coco.json "
      "beside "
      "images; splits may be missing. JPEGs and PNGs are stored unchanged, EXIF blocks included. Exception: an image "
      "whose annotations refer to its EXIF-rotated form is rotated and encoded as JPEG in records, as are images of "
      "other formats. Every image is decoded once; --on_bad_image sets the handling of damaged ones. Unusable "
      "annotations are dropped and counted, as in detectron2 and TensorPack.");
  values.declare(flags);
  if (!values.common.parse(flags, argv)) return 0;
  DT_CHECK(!values.link_images || values.to == "json", "--link_images: expected --to=json");
  std::vector<AnnotatedSource> sources;
  until_stopped([&] { sources = values.annotations.open(values.common.input, values.common.threads); });
  if (values.to == "json")
    return write_coco_files(values.common, sources, values.link_images, values.annotations.masks);
  return values.write_records(sources);
}

}  // namespace dtrain::dataset
