// cifar10, CIFAR-10: its binary batches, and the preprocessing of its images, stored in the ImageNet schema.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image.h"
#include "data/preprocess.h"
#include "libdtrain/core/rng.h"

namespace dtrain::data {

// Zero padding of 4 pixels, a random crop of the image's own size and a flip with p = 0.5; [height, width, 3] bytes.
void pad_crop_flip(const ImageView& image, RandomStream& random, uint8_t* out);

struct CifarOptions {
  bool training = true;
  int height = 32, width = 32;
  Orientation orientation = Orientation::ignore;
};

// tf_cnn_benchmarks': pad_crop_flip in training, the image as it is in evaluation. Where the size asked for is another
// one, a resize as TensorFlow's bilinear follows. Pixels are f32 in [0, 255].
MakePreprocess make_cifar_preprocess(const CifarOptions& options);

// The classes in the order of their labels: airplane, automobile, ...
const std::vector<std::string>& cifar_classes();

// The binary batches: 32x32 RGB.
struct CifarBatch {
  std::vector<uint8_t> bytes;  // per image: the label, 1024 red, 1024 green, 1024 blue
  uint64_t count() const { return bytes.size() / kRecord; }
  static constexpr uint64_t kRecord = 1 + 3 * 1024;
};
CifarBatch read_cifar_batches(const std::vector<std::string>& paths);
// What the folder holds where that is CIFAR-10 or CIFAR-100 in another form than records, and how it is made records;
// "" where it is not.
std::string other_cifar_form(const std::string& folder);
// Image `i` as a record that holds a PNG: nothing is lost.
std::string cifar_record(const CifarBatch& batch, uint64_t i, const std::vector<std::string>& classes,
                         int64_t first_label);

}  // namespace dtrain::data
