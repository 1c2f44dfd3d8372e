// dtrain-data imagenet: raw images to TFRecord shards.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/dataset/writing.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {
namespace {

// Part of the classes is enough to train on, but may be a mistake.
void note_missing_classes(const std::string& folder, const std::vector<data::TreeImage>& images, size_t classes) {
  std::set<int64_t> labels;
  for (const data::TreeImage& image : images) labels.insert(image.label);
  if (labels.size() < classes)
    cli::print_message("note", fmt::format("{}: images of {} of the {} classes", folder, labels.size(), classes));
}

}  // namespace

int imagenet(const Arguments& argv) {
  CommonFlags common;
  std::string labels, validation_labels;
  int64_t shards = 1024, validation_shards = 0;
  cli::FlagSet flags(argv.front(), "--input DIR --output DIR [--labels FILE] [flags]",
                     "Writes train-*-of-* from DIR/train/<class>/* and, if it is there, validation-*-of-* from "
                     "DIR/validation (or DIR/val), which has a folder per class too, or a labels file. Labels count "
                     "from 1 in the order of --labels. PNG and CMYK images are written as JPEG; all others keep their "
                     "bytes. Every image is decoded once, and one that cannot be ends the run.");
  common.declare(flags, "folder that holds train/ and validation/ or val/");
  flags.add("labels", labels,
            "text file with the name of a class folder per line; by default the folders in train/, "
            "sorted");
  flags.add("validation_labels", validation_labels,
            "text file with a class per line, for a validation folder without class folders: line i is the class of "
            "its image i, sorted by name (ILSVRC2012_val_00000001.JPEG and on)");
  flags.add("shards", shards, "train shards", {1, data::kMaxShards});
  flags.add("validation_shards", validation_shards, "validation shards; 0: an eighth of --shards",
            {0, data::kMaxShards});
  if (!common.parse(flags, argv)) return 0;

  const std::string train = existing_folder(common.input, {"train"});
  const std::string validation = existing_folder(common.input, {"validation", "val"});
  if (train.empty()) throw Error(Fault::data, common.input + ": no folder train in it");
  if (validation.empty() && !validation_labels.empty())
    throw Error(Fault::data, common.input + ": --validation_labels given, but no folder validation or val in it");
  const std::vector<std::string> classes = labels.empty() ? data::class_folders(train) : data::read_lines(labels);
  // All is listed before anything is written.
  std::vector<data::TreeImage> train_images = data::list_image_tree(train, classes, 1, true);
  std::vector<data::TreeImage> validation_images;
  if (!validation_labels.empty())
    validation_images = data::list_labelled_images(validation, classes, 1, validation_labels);
  else if (!validation.empty() && data::class_folders(validation).empty())
    throw Error(Fault::data, validation +
                                 ": no class folders in it; give the classes of its images by "
                                 "--validation_labels FILE, or move it away");
  else if (!validation.empty())
    validation_images = data::list_image_tree(validation, classes, 1, true);

  note_missing_classes(train, train_images, classes.size());
  std::vector<data::Split> splits{
      split_of_tree("train", shards, std::move(train_images), common.seed, data::tree_record)};
  if (!validation.empty()) {
    note_missing_classes(validation, validation_images, classes.size());
    if (validation_shards == 0) validation_shards = std::max<int64_t>(shards / 8, 1);
    splits.push_back(
        split_of_tree("validation", validation_shards, std::move(validation_images), common.seed, data::tree_record));
  }
  write_set(common, splits);
  return 0;
}

}  // namespace dtrain::dataset
