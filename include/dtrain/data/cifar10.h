// CIFAR-10: preprocessing, and conversion of its binary batches to records of the ImageNet schema.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/core/rng.h"
#include "dtrain/data/image.h"
#include "dtrain/data/preprocess.h"

namespace dtrain::data {

// Zero padding of 4 pixels, random crop of the original size, flip with p = 0.5. Writes [height, width, 3] bytes.
void pad_crop_flip(const ImageView& image, RandomStream& random, uint8_t* out);

struct CifarOptions {
  bool training = true;
  int height = 32, width = 32;
  Orientation orientation = Orientation::ignore;
};

// tf_cnn_benchmarks: pad_crop_flip in training, unchanged images in evaluation, then TensorFlow's bilinear resize if
// another size is requested. Pixels are f32 in [0, 255].
PreprocessorFactory make_cifar_preprocess(const CifarOptions& options = {});

// Class names in label order: airplane, automobile, ...
const std::vector<std::string>& cifar_classes();

// A binary batch of 32x32 RGB images.
struct CifarBatch {
  std::vector<uint8_t> bytes;  // per image: label, 1024 red, 1024 green, 1024 blue
  uint64_t count() const { return bytes.size() / kRecord; }
  static constexpr uint64_t kRecord = 1 + 3 * 1024;
};
CifarBatch read_cifar_batches(const std::vector<std::string>& paths);
// If the folder holds CIFAR-10 or CIFAR-100 in another format than TFRecord: its description and how to convert it,
// else "".
std::string other_cifar_form(const std::string& folder);
// Image `i` as a record with a PNG, without loss.
std::string cifar_record(const CifarBatch& batch, uint64_t i, const std::vector<std::string>& classes,
                         int64_t first_label);

}  // namespace dtrain::data
