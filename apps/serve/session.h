// A model with one set of weights, for concurrent inference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/serve/memory_budget.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/coco/results.h"
#include "dtrain/data/image.h"

namespace dtrain::serve {

// A decoded and preprocessed image.
struct Pixels {
  MemoryBudget::Reservation reservation{};  // reserved memory; the first member, so that it is released last
  std::vector<std::byte> values{};          // for a classifier: [height, width, 3] of the session's type
  data::Image image{};                      // for a detector: size in the file
  std::string damage{};                     // damage of the image; "" if intact
  size_t bytes() const {
    return values.size() + size_t{3} * static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  }
};

// Prediction for one image.
struct Prediction {
  std::vector<float> probabilities{};            // classifier: LoadedClassifier::probabilities()
  std::vector<data::coco::Detection> objects{};  // detector: by descending score, in pixels of the file
  int64_t height = 0, width = 0;                 // detector: size of the file
  std::string damage{};                          // as Pixels::damage
};

class Session {
 public:
  virtual ~Session() = default;

  virtual bool detects() const = 0;  // detector instead of classifier
  // Categories of a detector; empty for a classifier.
  virtual const std::vector<data::coco::Category>& categories() const = 0;
  // Class names of a classifier by output, with empty texts for unnamed classes; empty if none is known.
  virtual std::span<const std::string> class_names() const { return {}; }

  // Number of a classifier's classes; 0 for a detector.
  virtual int64_t outputs() const { return 0; }

  // Bytes of a preprocessed image of fixed size (classifier); 0 if the image keeps its own size.
  virtual size_t input_bytes() const { return 0; }

  // Decodes and preprocesses as in evaluation. Thread-safe. Throws Error(Fault::data).
  virtual Pixels decode(std::span<const std::byte> encoded) const = 0;
  // Pixels from levels 0 to 255, [height, width, 3] row-major. Throws Error(Fault::data) for any other count, and for a
  // detector, which reads encoded images of any size.
  virtual Pixels from_levels(std::span<const float> levels) const = 0;
  // Inference: one result per image. Thread-safe. Throws Error(Fault::numeric) for a non-finite result.
  virtual std::vector<Prediction> predict(std::span<const Pixels* const> images) const = 0;
  // Preferred batch size. In larger calls, all images wait for the slowest and fail together.
  virtual size_t max_batch() const { return std::numeric_limits<size_t>::max(); }

  uint64_t version() const { return version_; }
  const std::string& precision() const { return precision_; }  // "fp32", "bf16" or "int8"

 protected:
  // `version` is the step of the checkpoint, or 0 for a file of weights.
  Session(uint64_t version, std::string precision) : version_(version), precision_(std::move(precision)) {}

 private:
  uint64_t version_;
  std::string precision_;
};

}  // namespace dtrain::serve
