// Classification of image files.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/loaded_classifier.h"

namespace dtrain::classify {

struct Options {
  cli::ClassifierFlags model;
  std::string onnx;             // file to write; empty: none
  std::string device = "auto";  // "cpu", "gpu", or auto: a GPU if there is one
  int64_t top = 5, threads = 0;
  std::optional<int64_t> label{};  // true class of the images
  bool json = false, logits = false;
};

// Prints the most probable classes of each image on `out`, and a message for each unreadable image. Returns the exit
// code: 0, or that of a data fault if an image failed. `set`: the flags that were given.
int classify(const Options& options, const cli::FlagSet& set, const std::vector<std::string>& files, std::ostream& out);

}  // namespace dtrain::classify
