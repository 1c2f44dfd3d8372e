// A classifier with one set of weights, asked by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/loaded_classifier.h"
#include "data/preprocess.h"

namespace dtrain::serve {

// Pixels of one image as the model reads them: [height, width, 3] of the session's type.
using Pixels = std::vector<std::byte>;
// Softmax over the classes.
using Probabilities = std::vector<float>;

class Session {
 public:
  // `version` is the step of the checkpoint, or 0 for a file of weights. Images of more than `max_pixels` are refused.
  // Throws Error(Fault::checkpoint) where the weights do not fit.
  Session(const cli::ClassifierFlags& flags, const cli::FlagSet& set, const cli::Machine& machine, int64_t max_pixels,
          uint64_t version);

  uint64_t version() const { return version_; }
  const std::string& name() const { return loaded_.model().name; }
  const Shape& shape() const { return make_.shape; }

  // Decodes and preprocesses as an evaluation does. Any thread may call it. Throws Error(Fault::data).
  Pixels decode(std::span<const std::byte> encoded) const;
  // Pixels from levels 0 to 255, [height, width, 3] row by row. Throws Error(Fault::data) for any other count.
  Pixels from_levels(std::span<const float> levels) const;
  // One result per image. Any thread may call it. Throws Error(Fault::numeric) where a result is not finite.
  std::vector<Probabilities> predict(std::span<const Pixels* const> images) const;

 private:
  // Preprocessors keep buffers of their own: each is lent to one thread at a time.
  data::Preprocess borrow() const;

  cli::LoadedClassifier loaded_;
  data::MakePreprocess make_;
  int64_t max_pixels_;
  uint64_t version_;
  mutable std::mutex mutex_;
  mutable std::vector<data::Preprocess> idle_;
};

// Classes by falling probability, the lower class first among equals; at most `count`.
std::vector<size_t> ranking(const Probabilities& probabilities, size_t count);

}  // namespace dtrain::serve
