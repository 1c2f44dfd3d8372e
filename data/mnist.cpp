#include "dtrain/data/mnist.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "data/whole_image.h"
#include "dtrain/core/error.h"
#include "dtrain/data/imagenet.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kClasses = 10;

// Path of an existing file, or "". A plain file has priority over its .gz. Kaggle's archives put each file into a
// folder of its name.
std::string existing_file(const fs::path& folder, const std::string& stem, int dimensions) {
  std::error_code unreadable;  // an inaccessible file is treated as missing
  for (const char* ending : {"", ".gz"})
    for (const char* dash : {"-", "."}) {
      const std::string name = concat(stem, dash, "idx", dimensions, "-ubyte", ending);
      for (const fs::path& path : {folder / name, folder / name / name})
        if (fs::exists(path, unreadable) && !fs::is_directory(path, unreadable)) return path.string();
    }
  return "";
}

// First EMNIST file in the folder, or "". EMNIST has other split names.
std::string emnist_file(const std::string& folder) {
  std::error_code unreadable;
  std::string first;
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("emnist-") && has_idx_name(name) && (first.empty() || name < first))
      first = name;
  return first;
}

void require_dimensions(const IdxArray& array, size_t dimensions, const char* what) {
  if (array.shape.size() != dimensions)
    throw Error(Fault::data, concat(array.path, ": ", shape_text(array), " bytes by its header, expected ", what));
}

void check_pair(const MnistSplit& split) {
  require_dimensions(split.images, 3, "images: count x height x width");
  require_dimensions(split.labels, 1, "labels: a count alone");
  if (split.images.items() != split.labels.items())
    throw Error(Fault::data, concat(split.labels.path, ": ", split.labels.items(), " labels by its header, expected ",
                                    split.images.items(), ", one for each image of ", split.images.path));
}

void check_range(const IdxArray& labels, int64_t classes, int64_t label_offset) {
  for (uint64_t i = 0; i < labels.items(); ++i) {
    if (const int64_t label = labels.bytes[i] + label_offset; label >= 0 && label < classes) continue;
    const auto [least, most] = std::ranges::minmax(labels.bytes);
    throw Error(Fault::data,
                fmt::format("{}: label {} at byte {}, expected {} to {} ({} classes, label offset {}); the labels are "
                            "{} to {}, for which --num_classes={} --label_offset={} are right",
                            labels.path, labels.bytes[i], labels.offset_of(i), -label_offset,
                            classes - label_offset - 1, classes, label_offset, least, most, most - least + 1, -least));
  }
}

}  // namespace

void check_labels_of(const IdxArray& labels) {
  const fs::path path = labels.path;
  const std::string name = path.filename().string(), part = "-labels";
  const size_t at = name.find(part);
  if (at == std::string::npos) return;
  check_range(labels, kClasses, 0);
  if (const std::string images = existing_file(path.parent_path(), name.substr(0, at) + "-images", 3); !images.empty())
    check_pair({read_idx(images), labels});
}

bool has_mnist(const std::string& directory) {
  for (const char* stem : {"train-images", "t10k-images"})
    for (const fs::path& folder : {fs::path(directory), fs::path(directory) / "raw"})
      if (!existing_file(folder, stem, 3).empty()) return true;
  return false;
}

MnistSplit read_mnist(const std::string& directory, bool training) {
  const std::string stem = training ? "train" : "t10k";
  std::string images, labels;
  for (const fs::path& folder : {fs::path(directory), fs::path(directory) / "raw"}) {
    if (images.empty()) images = existing_file(folder, stem + "-images", 3);
    if (labels.empty()) labels = existing_file(folder, stem + "-labels", 1);
  }
  if (const std::string other = emnist_file(directory); images.empty() && !other.empty())
    throw Error(Fault::data,
                concat(directory, ": holds EMNIST, as ", other, ": give the files of one of its splits the names ",
                       stem, "-images-idx3-ubyte and ", stem,
                       "-labels-idx1-ubyte; the labels of its letters count from 1 to "
                       "26, for which --num_classes=26 --label_offset=-1 are right, and its images lie on their side"));
  for (const auto& [path, name] : {std::pair(images, "-images-idx3-ubyte"), std::pair(labels, "-labels-idx1-ubyte")})
    if (path.empty())
      throw Error(Fault::data, concat(directory, ": no file ", stem, name, " in it, plain or with .gz"));
  MnistSplit split{read_idx(images), read_idx(labels)};
  check_pair(split);
  return split;
}

class MnistDataset::Reader final : public SampleReader {
 public:
  explicit Reader(const MnistDataset& dataset)
      : dataset_(dataset),
        image_(static_cast<int>(dataset.split_.images.shape[2]), static_cast<int>(dataset.split_.images.shape[1])),
        writer_(dataset.size_, dataset.size_) {}

  SampleNotes read(uint64_t record, const SampleKey&, const Row& row) override {
    uint8_t* to = image_.pixels.data();
    for (const uint8_t level : dataset_.split_.images.item(record)) to = std::fill_n(to, 3, level);
    writer_.write(image_.view(), static_cast<float*>(row.raw(0)));
    const int64_t label = dataset_.split_.labels.bytes[record] + dataset_.label_offset_;
    row.span<int32_t>(1)[0] = static_cast<int32_t>(label);
    return {};
  }

 private:
  const MnistDataset& dataset_;
  Image image_;
  WholeImage writer_;
};

MnistDataset::MnistDataset(const MnistOptions& options)
    : split_(read_mnist(options.directory, options.training)),
      label_offset_(options.label_offset),
      size_(options.size),
      layout_(labelled_images({options.size, options.size, 3}, DType::f32)),
      begins_{0, split_.images.items()} {
  const IdxArray& images = split_.images;
  const ImageLimits limits;
  if (images.bytes.empty() || images.shape[1] > limits.max_side || images.shape[2] > limits.max_side)
    throw Error(Fault::data, concat(images.path, ": ", shape_text(images), " bytes by its header: no images"));
  check_range(split_.labels, options.classes, label_offset_);
}

RecordLocation MnistDataset::locate(uint64_t record) const {
  return {split_.images.path, split_.images.offset_of(record), record};
}

std::unique_ptr<SampleReader> MnistDataset::reader() const { return std::make_unique<Reader>(*this); }

std::string MnistDataset::identity() const {
  std::string lines;
  for (const IdxArray* array : {&split_.images, &split_.labels})
    lines += fmt::format("{} {}\n", fs::path(array->path).filename().string(), shape_text(*array));
  return lines;
}

std::string MnistDataset::contents() const {
  std::string lines;
  for (const IdxArray* array : {&split_.images, &split_.labels})
    lines += fmt::format("{}: {}, checksum {:08x}\n", fs::path(array->path).filename().string(), shape_text(*array),
                         crc32c(array->bytes.data(), array->bytes.size()));
  return lines;
}

}  // namespace dtrain::data
