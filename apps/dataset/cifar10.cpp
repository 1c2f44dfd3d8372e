// dtrain-data cifar10: converts image folders or binary batches to TFRecord shards.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/dataset/files.h"
#include "apps/dataset/writing.h"
#include "dtrain/core/error.h"
#include "dtrain/data/cifar10.h"

namespace dtrain::dataset {

namespace fs = std::filesystem;

int cifar10(const Arguments& argv) {
  const std::vector<std::string>& classes = data::cifar_classes();
  CommonFlags common;
  int64_t shards = 8, first_label = 0;
  cli::FlagSet flags(argv.front(), "--input DIR --output DIR [flags]",
                     "Reads DIR/train/<class>/* and DIR/test/<class>/*, whose files are stored unchanged, or the "
                     "binary batches data_batch_1.bin ... test_batch.bin, whose images are encoded as PNG.");
  common.reads_images = true;
  common.declare(flags, "folder with train/ and test/, or with the binary batches");
  flags.add("shards", shards, "train shards; validation gets a quarter as many", {1, data::kMaxShards});
  flags.add("first_label", first_label, "label of airplane", {0, 1});
  if (!common.parse(flags, argv)) return 0;
  const auto name_classes = [&] { write_class_names(common, classes, first_label); };

  const int64_t test_shards = std::max<int64_t>(shards / 4, 1);
  const std::string train = existing_folder(common.input, {"train"}), test = existing_folder(common.input, {"test"});
  if (!train.empty() && !test.empty()) {
    KeptWarnings warnings;
    const auto split = [&](const char* name, int64_t count, const std::string& folder) {
      return split_of_tree(name, count, data::list_image_tree(folder, classes, first_label, false), common.seed,
                           data::verbatim_record, warnings);
    };
    const int code =
        write_set(common, {split("train", shards, train), split("validation", test_shards, test)}, "", warnings);
    name_classes();
    return code;
  }
  const fs::path root = common.input;
  std::error_code unreadable;
  const std::string form = data::other_cifar_form(common.input);
  if (!form.empty() && !fs::exists(root / "data_batch_1.bin", unreadable))
    throw Error(Fault::data, common.input + ": holds " + form);
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"})
    if (!fs::exists(root / name, unreadable))
      throw Error(Fault::data, concat(common.input,
                                      ": neither train/ and test/ nor data_batch_1.bin to "
                                      "data_batch_5.bin and test_batch.bin in it (",
                                      name, " is missing)"));
  std::vector<std::string> train_files;
  for (int i = 1; i <= 5; ++i) train_files.push_back((root / concat("data_batch_", i, ".bin")).string());
  const auto split = [&](const char* name, int64_t count, const std::vector<std::string>& files) -> data::Split {
    const auto batch = std::make_shared<const data::CifarBatch>(data::read_cifar_batches(files));
    return {name, count, batch->count(),
            [&, batch, order = data::shuffled(batch->count(), static_cast<uint64_t>(common.seed))](uint64_t i) {
              return data::cifar_record(*batch, order[i], classes, first_label);
            }};
  };
  const int code = write_set(common, {split("train", shards, train_files),
                                      split("validation", test_shards, {(root / "test_batch.bin").string()})});
  name_classes();
  return code;
}

}  // namespace dtrain::dataset
