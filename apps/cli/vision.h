// What the programs for images share: models by name, and what --preprocessing stands for.
#pragma once

#include <string>

#include "data/augment.h"
#include "libdtrain/core/types.h"
#include "libdtrain/ops/pointwise.h"
#include "models/catalog.h"

namespace dtrain::cli {

// models::find_classifier for --model. Throws Error naming the flag, the nearest name and all others.
const models::ClassifierInfo& find_model(const std::string& name, const std::string& dataset);

// From encoded images to the pixels that the model is given.
struct Pixels {
  std::string preprocessing = "tf_cnn";  // or "torchvision"
  std::string dataset = "imagenet";      // tf_cnn: "cifar10" has its own crops
  std::string resize_method = "bilinear";
  bool distortions = false, distort_in_yiq = true;
  bool ml_perf = false;
  int size = 224;

  data::MakePreprocess make(bool training) const;
  // What leaves that to a GPU. Throws Error where no GPU makes these pixels.
  data::MakeDefer make_defer(bool training) const;
  data::DecodeOptions decoding(bool training) const;
  DType dtype() const;  // of what `make` writes, in [0, 255]
  PixelNormalization normalization() const;

 private:
  bool are_cifar() const;
  data::PreprocessOptions options(bool training) const;
};

}  // namespace dtrain::cli
