// Catalogue of data sets: properties by name, and opening of their splits.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/augment.h"
#include "dtrain/data/augmented.h"
#include "dtrain/data/cache.h"

namespace dtrain::data {

// Normalisation of pixels: (pixel - mean) * scale, per channel.
struct PixelScale {
  std::array<float, 3> mean{}, scale{};
};

// A named preprocessing preset of a data set.
struct Preprocessing {
  std::string name{};
  Preset preset = Preset::tf_cnn;
  PixelScale scale{};
  bool use_boxes = true;  // crops are constrained to overlap objects
  PreprocessorFactory (*make)(const PreprocessOptions&) = make_preprocess;
  std::string host_only{};  // reason why the device cannot do it; empty if it can
};

// User's choice of preprocessing, by the names of the predecessor programs.
struct Pixels {
  std::string dataset = "imagenet", preprocessing = "tf_cnn";
  bool distortions = false;  // for tf_cnn and aws only
  // For tf_cnn only:
  std::string resize_method = "bilinear";  // or another name of TfResize
  bool distort_in_yiq = true;
  bool ml_perf = false;                           // subtract the mean colour without scaling; ignore bounding boxes
  int size = 224;                                 // height and width of a sample, in pixels
  Orientation orientation = Orientation::ignore;  // whether to apply the EXIF orientation tag

  // The methods below throw Error for an unknown preprocessing or resize method.
  PreprocessorFactory make(bool training) const;
  DecodeOptions decoding(bool training) const;
  PixelScale scale() const;
  // Reason why pixels must be made on the host; empty if the device can make them.
  const std::string& host_only() const;
};

// Options of opening a split.
struct SplitOptions {
  std::string directory{};
  bool training = true;               // files train-* or folder train, else validation
  bool augments = true;               // random crops and flips, else the preprocessing of evaluation
  int64_t classes = 0;                // 0: default of the data set, or the number of class folders or listed classes
  int64_t label_offset = 0;           // added to stored labels; the sum must lie in [0, classes)
  SampleAugmentation augmentation{};  // with `augments`, applied after the preprocessing
  CacheOptions cache{};
  std::function<void(const std::string&)> notice{};  // optional: counts of a folder or list of images, one line each
  bool multi_label = false;                          // targets for several labels of an image; not of shards
};

// Format of a data set's files.
enum class FilesKind { labelled_images, idx, objects };

struct DatasetInfo {
  std::string name{};
  std::string path_part{};  // lower-case substring of paths that implies the data set; empty: not needed
  FilesKind files = FilesKind::labelled_images;
  uint64_t training = 0, validation = 0;  // published number of images per split
  int64_t classes = 0;                    // default number of outputs of a model
  std::vector<Preprocessing> preprocessings{};
  // Opens a split with the schema of the records.
  std::shared_ptr<Dataset> (*open)(const DatasetInfo&, const SplitOptions&, const Pixels&) = nullptr;
};

// All data sets, the default one first.
const std::vector<DatasetInfo>& datasets();
std::vector<std::string> dataset_names();
// Null for an unknown name.
const DatasetInfo* find_dataset(std::string_view name);
// The same. Throws Error listing the known names.
const DatasetInfo& dataset_info(std::string_view name);
// Guesses the data set of the folder `path` from the format of its files, then, as tf_cnn_benchmarks does, from a
// case-insensitive match of the path. Adds a notice if files and path disagree.
const DatasetInfo& dataset_at(std::string_view path, std::vector<std::string>& notices);
// Unique names of all preprocessing presets.
std::vector<std::string> preprocessing_names();

// Opens a split of the data set pixels.dataset: shards, else class folders in train/ and validation/, whose labels are
// the positions of their sorted names, else WebDataset archives, else lists of images. Throws Error(Fault::data) if
// there are no such files, a file is missing or unreadable, or no record is readable.
std::shared_ptr<Dataset> open_split(const Pixels& pixels, const SplitOptions& options);

}  // namespace dtrain::data
