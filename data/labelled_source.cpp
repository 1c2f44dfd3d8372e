#include "data/labelled_source.h"

#include <vector>

#include "data/image_list.h"
#include "data/shard_files.h"
#include "data/web_dataset.h"
#include "dtrain/core/error.h"
#include "dtrain/data/catalog.h"
#include "dtrain/data/example.h"
#include "dtrain/data/record_shards.h"

namespace dtrain::data {
namespace {

const char* name_of_split(bool training) { return training ? "train" : "validation"; }

// TFRecords in the ImageNet schema.
class RecordSource final : public ImageSource {
 public:
  explicit RecordSource(const FolderOptions& options)
      : shards_(find_shards(options.directory, name_of_split(options.training)), options.cache) {}

  uint64_t size() const override { return shards_.size(); }
  const std::vector<uint64_t>& shard_begins() const override { return shards_.begins(); }
  RecordLocation locate(uint64_t image) const override { return shards_.locate(image); }
  const std::vector<std::string>& faults() const override { return shards_.faults(); }
  std::string identity() const override { return shards_.identity(); }
  std::string contents() const override { return shards_.contents(); }

  int64_t label(uint64_t image) const override {
    std::vector<std::byte> buffer;
    Example example;
    example.parse(shards_.read(image, buffer));
    return example.int64("image/class/label");
  }
  std::span<const std::byte> read(uint64_t image, std::vector<std::byte>& buffer) const override {
    Example example;
    example.parse(shards_.read(image, buffer));
    return std::as_bytes(std::span(example.bytes("image/encoded")));
  }
  void prefetch(uint64_t image) const override { shards_.prefetch(image); }
  bool can_prefetch() const override { return shards_.can_prefetch(); }

 private:
  RecordShards shards_;
};

bool has_tars_of(const std::string& data, bool training) {
  if (!training && has_tars_of_one_split(data)) return false;
  try {
    return !find_tars(data, training).empty();
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    return false;
  }
}

}  // namespace

LabelledFormat labelled_format(const std::string& data) {
  if (has_image_folders(data)) return LabelledFormat::folders;
  if (has_tars(data)) return LabelledFormat::archives;
  return has_image_lists(data) ? LabelledFormat::lists : LabelledFormat::records;
}

bool has_labelled_images(const std::string& data, bool training) {
  const LabelledFormat format = labelled_format(data);
  if (format == LabelledFormat::folders) return !split_folder(data, training).empty();
  if (format == LabelledFormat::archives) return has_tars_of(data, training);
  if (format == LabelledFormat::lists) return !find_image_list(data, training).empty();
  std::vector<std::string> notices;
  return has_shards(data, name_of_split(training)) && dataset_at(data, notices).files == FilesKind::labelled_images;
}

ClassNames stored_class_names(const std::string& data) {
  const LabelledFormat format = labelled_format(data);
  std::vector<std::string> by_label;
  if (format == LabelledFormat::folders)
    by_label = classes_of_folders(data);
  else if (format == LabelledFormat::lists)
    by_label = labels_of_lists(data).names;
  else
    return read_class_names(data);
  ClassNames names;
  for (size_t i = 0; i < by_label.size(); ++i)
    if (!by_label[i].empty()) names.emplace(static_cast<int64_t>(i), by_label[i]);
  return names;
}

std::optional<int64_t> outputs_of_classes(const std::string& data, int64_t label_offset) {
  const LabelledFormat format = labelled_format(data);
  if (format == LabelledFormat::folders) return image_folder_outputs(data, label_offset);
  if (format == LabelledFormat::lists) return labels_of_lists(data).count + label_offset;
  return {};
}

std::unique_ptr<const ImageSource> open_labelled_images(const FolderOptions& options) {
  const LabelledFormat format = labelled_format(options.directory);
  if (format == LabelledFormat::folders) return open_image_folder(options);
  if (format == LabelledFormat::archives)
    return open_web_dataset({options.directory, options.training, options.cache, options.notice});
  if (format == LabelledFormat::lists)
    return open_image_list({.data = options.directory,
                            .training = options.training,
                            .multi_label = true,
                            .cache = options.cache,
                            .notice = options.notice});
  return std::make_unique<RecordSource>(options);
}

}  // namespace dtrain::data
