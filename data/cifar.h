// CIFAR-10's preprocessing, of images stored in the ImageNet schema.
#pragma once

#include "data/preprocess.h"

namespace dtrain::data {

struct CifarOptions {
  bool training = true;
  int height = 32, width = 32;
};

// tf_cnn_benchmarks': in training a padding of 4, a random crop of the image's own size and a flip with p = 0.5; the
// image as it is in evaluation. Where the size asked for is another one, a resize as TensorFlow's bilinear follows.
// Pixels are f32 in [0, 255].
MakePreprocess make_cifar_preprocess(const CifarOptions& options);

}  // namespace dtrain::data
