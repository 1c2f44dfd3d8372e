// dtrain-data imagenet: converts raw images, in folders or ImageNet's archives, to TFRecord shards.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/messages.h"
#include "apps/cli/run_main.h"
#include "apps/dataset/imagenet_images.h"
#include "data/box_list.h"
#include "dtrain/core/error.h"
#include "dtrain/data/cache.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::dataset {
namespace {

// A subset of the classes is valid, but may be a mistake.
void note_missing_classes(const std::string& place, const Images& images, size_t classes) {
  std::set<int64_t> labels;
  for (const data::TreeImage& image : images) labels.insert(image.label);
  if (labels.size() < classes)
    cli::print_message("note", fmt::format("{}: images of {} of the {} classes", place, labels.size(), classes));
}

void add_boxes(const std::string& file, Splits& splits) {
  const std::map<std::string, std::vector<data::NormalizedBox>> lists = data::read_box_list(file);
  size_t found = 0;
  for (Images* images : {&splits.train, &splits.validation})
    for (data::TreeImage& image : *images)
      if (const auto list = lists.find(image.filename); list != lists.end()) {
        image.boxes = list->second;
        ++found;
      }
  cli::print_message("note", fmt::format("{}: boxes of {} of the {} images", file, found,
                                         splits.train.size() + splits.validation.size()));
}

// Fingerprint of the shards' inputs, without reading the images again.
std::string source_of(const ImagenetFlags& flags, const Splits& splits) {
  std::string text = fmt::format("dtrain-data imagenet {}\nseed {}, {} and {} shards\n", cli::version(),
                                 flags.common.seed, flags.shards, flags.validation_shards);
  for (const std::string& path : {flags.train_tar, flags.val_tar, flags.bounding_boxes, flags.validation_labels})
    if (!path.empty())
      text += fmt::format("{} {} bytes {}\n", std::filesystem::absolute(path).string(), InputFile(path).size(),
                          data::modified_at(path));
  const std::string classes = fmt::format("{}", fmt::join(splits.classes, "\n"));
  return text + fmt::format("classes {:08x}\n", crc32c(classes.data(), classes.size()));
}

}  // namespace

int imagenet(const Arguments& argv) {
  ImagenetFlags given;
  cli::FlagSet flags(
      argv.front(), "--input DIR|--train_tar FILE --output DIR [--labels FILE] [flags]",
      "Writes train-*-of-* from DIR/train/<class>/*, and validation-*-of-* from DIR/validation (or val, valid) if "
      "present, which has class folders or a label file. Labels count from 1 in the order of --labels. JPEGs are "
      "stored unchanged; CMYK JPEGs and other formats are encoded as JPEG. Every image is decoded once; --on_bad_image "
      "sets the handling of damaged ones. classes.txt lists the class names, with the descriptions from --labels.\n"
      "ImageNet's archives are read in place, without unpacking. An interrupted conversion of archives keeps its "
      "complete shards, and the same command resumes after them; a conversion of folders starts over.");
  given.declare(flags);
  if (!given.common.parse(flags, argv)) return 0;
  given.check();
  given.take_kaggle_layout();
  if (given.validation_shards == 0) given.validation_shards = std::max<int64_t>(given.shards / 8, 1);

  // Lists all images before writing.
  Splits found = list_images(given);
  if (!given.bounding_boxes.empty()) add_boxes(given.bounding_boxes, found);
  const std::string source = given.has_tars() ? source_of(given, found) : "";
  std::vector<data::Split> splits;
  KeptWarnings warnings;
  const auto add = [&](const char* name, int64_t shards, const std::string& place, Images& images) {
    if (images.empty()) return;
    note_missing_classes(place, images, found.classes.size());
    splits.push_back(split_of_tree(name, shards, std::move(images), given.common.seed, data::tree_record, warnings));
  };
  add("train", given.shards, found.train_place, found.train);
  add("validation", given.validation_shards, found.validation_place, found.validation);
  const int code = write_set(given.common, splits, source, warnings);
  write_class_names(given.common, found.titles.empty() ? found.classes : found.titles, 1);
  return code;
}

}  // namespace dtrain::dataset
