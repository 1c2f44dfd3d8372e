// Classification of image files with trained weights.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace dtrain::classify {

struct Options {
  std::string model, weights;
  int64_t num_classes = 0;  // 0: as many as the weights have
  int64_t image_size = 0;   // 0: the model's default
  std::string preprocessing = "tf_cnn";
  std::string device = "auto";  // "cpu", "gpu", or auto: the GPU where there is one
  bool ml_perf = false;
  int64_t top = 5, threads = 0;
  bool json = false, logits = false;
};

// Prints each image's most probable classes on `out`, and a message where one cannot be read or decoded. Returns the
// exit code: 0, or that of a data fault where an image failed.
int classify(const Options& options, const std::vector<std::string>& files, std::ostream& out);

}  // namespace dtrain::classify
