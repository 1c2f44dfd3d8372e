// dtrain-data cifar10: image folders or binary batches to TFRecord shards.
#include <algorithm>
#include <filesystem>

#include "apps/dataset/writing.h"
#include "data/cifar10.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {

namespace fs = std::filesystem;

int cifar10(const Arguments& argv) {
  const std::vector<std::string>& classes = data::cifar_classes();
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
  const std::string train = existing_folder(common.input, {"train"}), test = existing_folder(common.input, {"test"});
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
