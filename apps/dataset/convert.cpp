// dtrain-data imagenet and cifar10: raw images to TFRecord shards.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "apps/dataset/writing.h"
#include "data/image_tree.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// One split of a tree, shuffled, so that any part of a shard is a mixture of the classes.
void write_tree(const data::ShardOptions& options, const std::vector<data::TreeImage>& images, int64_t seed,
                std::string (*make)(const data::TreeImage&)) {
  const std::vector<uint64_t> order = data::shuffled(images.size(), static_cast<uint64_t>(seed));
  write_split(options, images.size(), [&](uint64_t i) { return make(images[order[i]]); });
}

// Part of the classes is enough to train on, but may be a mistake.
void note_missing_classes(const std::string& folder, const std::vector<data::TreeImage>& images, size_t classes) {
  std::set<int64_t> labels;
  for (const data::TreeImage& image : images) labels.insert(image.label);
  if (labels.size() < classes)
    fmt::print(stderr, "note: {}: images of {} of the {} classes\n", folder, labels.size(), classes);
}

// The folder of the first name that is there, or "".
std::string existing(const std::string& root, std::initializer_list<const char*> names) {
  std::error_code unreadable;
  for (const char* name : names)
    if (const fs::path folder = fs::path(root) / name; fs::is_directory(folder, unreadable)) return folder.string();
  return "";
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

  const std::string train = existing(common.input, {"train"});
  const std::string validation = existing(common.input, {"validation", "val"});
  if (train.empty()) throw Error(Fault::data, common.input + ": no folder train in it");
  if (validation.empty() && !validation_labels.empty())
    throw Error(Fault::data, common.input + ": --validation_labels given, but no folder validation or val in it");
  const std::vector<std::string> classes = labels.empty() ? data::class_folders(train) : data::read_lines(labels);
  // All is listed before anything is written.
  const auto train_images = data::list_image_tree(train, classes, 1, true);
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
  write_tree({common.output, "train", shards, common.threads}, train_images, common.seed, data::tree_record);
  if (validation.empty()) return 0;
  note_missing_classes(validation, validation_images, classes.size());
  if (validation_shards == 0) validation_shards = std::max<int64_t>(shards / 8, 1);
  write_tree({common.output, "validation", validation_shards, common.threads}, validation_images, common.seed,
             data::tree_record);
  return 0;
}

int cifar10(const Arguments& argv) {
  const std::vector<std::string> classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                                            "dog",      "frog",       "horse", "ship", "truck"};
  CommonFlags common;
  int64_t shards = 8, first_label = 0;
  cli::FlagSet flags(argv.front(), "--input DIR --output DIR [flags]",
                     "Reads DIR/train/<class>/* and DIR/test/<class>/*, whose files keep their bytes, or the binary "
                     "batches data_batch_1.bin ... test_batch.bin, whose images become PNGs.");
  common.declare(flags, "folder with train/ and test/, or with the binary batches");
  flags.add("shards", shards, "train shards; validation has a quarter of them", {1, data::kMaxShards});
  flags.add("first_label", first_label, "label of airplane", {0, 1});
  if (!common.parse(flags, argv)) return 0;

  const data::ShardOptions train_options{common.output, "train", shards, common.threads};
  const data::ShardOptions test_options{common.output, "validation", std::max<int64_t>(shards / 4, 1), common.threads};
  const std::string train = existing(common.input, {"train"}), test = existing(common.input, {"test"});
  if (!train.empty() && !test.empty()) {
    const auto train_images = data::list_image_tree(train, classes, first_label, false);
    const auto test_images = data::list_image_tree(test, classes, first_label, false);
    write_tree(train_options, train_images, common.seed, data::verbatim_record);
    write_tree(test_options, test_images, common.seed, data::verbatim_record);
    return 0;
  }
  const fs::path root = common.input;
  std::error_code unreadable;
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"})
    if (!fs::exists(root / name, unreadable))
      throw Error(Fault::data, concat(common.input,
                                      ": neither train/ and test/ nor data_batch_1.bin to "
                                      "data_batch_5.bin and test_batch.bin in it (",
                                      name, " is missing)"));
  std::vector<std::string> train_files;
  for (int i = 1; i <= 5; ++i) train_files.push_back((root / concat("data_batch_", i, ".bin")).string());
  for (const bool training : {true, false}) {
    const data::CifarBatch batch =
        data::read_cifar_batches(training ? train_files : std::vector{(root / "test_batch.bin").string()});
    const std::vector<uint64_t> order = data::shuffled(batch.count(), static_cast<uint64_t>(common.seed));
    write_split(training ? train_options : test_options, batch.count(),
                [&](uint64_t i) { return data::cifar_record(batch, order[i], classes, first_label); });
  }
  return 0;
}

}  // namespace dtrain::dataset
