// Classification of image files with trained weights, and the export of the model that does it.
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
  std::optional<int64_t> label{};  // the class that the images are of
  bool json = false, logits = false;
};

// Prints each image's most probable classes on `out`, and a message where one cannot be read or decoded. Returns the
// exit code: 0, or that of a data fault where an image failed. `set` tells which flags were given.
int classify(const Options& options, const cli::FlagSet& set, const std::vector<std::string>& files, std::ostream& out);

// Writes the model to `options.onnx`, see models::export_onnx, and says so on `out`.
void export_model(const Options& options, const cli::FlagSet& set, std::ostream& out);

}  // namespace dtrain::classify
