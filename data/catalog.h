// The catalogue of the data sets: what is known of each by its name, and how its files become samples.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/augmented.h"
#include "data/cache.h"

namespace dtrain::data {

// What a model is given of a pixel: (pixel - mean) * scale, by colour.
struct PixelScale {
  std::array<float, 3> mean{}, scale{};
};

// A way from encoded images to pixels.
struct Preprocessing {
  std::string name{};
  Preset preset = Preset::tf_cnn;
  PixelScale scale{};
  bool use_boxes = true;  // crops keep the objects of an image in sight
  MakePreprocess (*make)(const PreprocessOptions&) = make_preprocess;
  std::string host_only{};  // why no device can do it; empty where one can
};

// Which of them a user wants, by the names that programs know, and with what.
struct Pixels {
  std::string dataset = "imagenet", preprocessing = "tf_cnn";
  bool distortions = false;  // for tf_cnn and aws only
  // For tf_cnn only:
  std::string resize_method = "bilinear";  // or another name of TfResize
  bool distort_in_yiq = true;
  bool ml_perf = false;  // the mean colour is subtracted and nothing scaled; bounding boxes are ignored
  int size = 224;        // height and width of a sample
  Orientation orientation = Orientation::ignore;  // whether the EXIF orientation tag is applied

  // All throw Error where the data set has no such preprocessing or a method has no such name.
  MakePreprocess make(bool training) const;
  // What leaves that to a device. Throws Error where no device makes these pixels.
  MakeDefer make_defer(bool training) const;
  DecodeOptions decoding(bool training) const;
  PixelScale scale() const;
  // Why the host must make the pixels, as far as the preprocessing says; empty where a device can.
  const std::string& host_only() const;
};

// Which split of a data set is opened, and what for.
struct SplitOptions {
  std::string directory{};
  bool training = true;               // the files train-*, else validation-*
  bool augments = true;               // crops and flips at random, else as evaluations see images
  bool defers = false;                // decoding may be left to a device
  int64_t classes = 0;                // 0: the data set's default
  int64_t label_offset = 0;           // added to the labels of the files; the sum must lie in [0, classes)
  SampleAugmentation augmentation{};  // where `augments`, after the preprocessing
  CacheOptions cache{};
};

// What the files of a data set hold.
enum class FilesKind { labelled_images, idx, objects };

struct DatasetInfo {
  std::string name{};
  std::string path_part{};  // what a path contains that leads to it, in small letters; empty: none need
  FilesKind files = FilesKind::labelled_images;
  uint64_t training = 0, validation = 0;  // images of the two splits as published
  int64_t classes = 0;                    // outputs of a model, where the user names no number
  std::vector<Preprocessing> preprocessings{};
  // Opens a split, by the schema of the records.
  std::shared_ptr<Dataset> (*open)(const DatasetInfo&, const SplitOptions&, const Pixels&) = nullptr;
};

// All of them, the default one first.
const std::vector<DatasetInfo>& datasets();
std::vector<std::string> dataset_names();
// Null where no data set has the name.
const DatasetInfo* find_dataset(const std::string& name);
// The same. Throws Error naming those that there are.
const DatasetInfo& dataset_info(const std::string& name);
// The first data set that fits the kind of the files in the folder `path`, if there are any, and of those that do one
// that the path names, in letters of either case, as tf_cnn_benchmarks guesses it. Adds a notice where the files say
// otherwise than the path.
const DatasetInfo& dataset_at(const std::string& path, std::vector<std::string>& notices);
// The names of the ways to preprocess that any data set has, each once.
std::vector<std::string> preprocessing_names();

// A split of the data set pixels.dataset. Throws Error(Fault::data) where there are no such files, one is missing or
// cannot be read, or where no record can.
std::shared_ptr<Dataset> open_split(const Pixels& pixels, const SplitOptions& options);

}  // namespace dtrain::data
