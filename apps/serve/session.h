// A model with one set of weights, asked by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/serve/room.h"
#include "data/coco/annotations.h"
#include "data/coco/results.h"
#include "data/image.h"

namespace dtrain::serve {

// One image as the model reads it.
struct Pixels {
  Room::Share room{};               // that they take; the first member, so that it ends last
  std::vector<std::byte> values{};  // for a classifier: [height, width, 3] of the session's type
  data::Image image{};              // for a detector: as it is in the file
  std::string damage{};             // what is wrong with a damaged image; "" for a whole one
  size_t bytes() const {
    return values.size() + size_t{3} * static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  }
};

// What a model says of one image.
struct Prediction {
  std::vector<float> probabilities{};            // of a classifier: softmax over the classes
  std::vector<data::coco::Detection> objects{};  // of a detector, by descending score, in pixels of the file
  int64_t height = 0, width = 0;                 // of the file, for a detector
  std::string damage{};                          // as Pixels::damage
};

class Session {
 public:
  virtual ~Session() = default;

  virtual bool detects() const = 0;  // objects, and not the class of the image
  // A detector's; none of a classifier.
  virtual const std::vector<data::coco::Category>& categories() const = 0;
  // A classifier's, by output; empty texts for classes without a name, and none at all where none is known.
  virtual std::span<const std::string> class_names() const { return {}; }

  // Of a classifier: how many classes it tells apart; 0 of a detector.
  virtual int64_t outputs() const { return 0; }

  // Bytes that it makes of an image of any size, where it does not keep its pixels: a classifier.
  virtual size_t input_bytes() const { return 0; }

  // Decodes and preprocesses as an evaluation does. Any thread may call it. Throws Error(Fault::data).
  virtual Pixels decode(std::span<const std::byte> encoded) const = 0;
  // Pixels from levels 0 to 255, [height, width, 3] row by row. Throws Error(Fault::data) for any other count, and for
  // a detector, which reads images of any size.
  virtual Pixels from_levels(std::span<const float> levels) const = 0;
  // One result per image. Any thread may call it. Throws Error(Fault::numeric) where a result is not finite.
  virtual std::vector<Prediction> predict(std::span<const Pixels* const> images) const = 0;
  // Images that are computed faster together. Of more in one call, all wait for the slowest and fail with any.
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

// Classes by falling probability, the lower class first among equals; at most `count`.
std::vector<size_t> ranking(const std::vector<float>& probabilities, size_t count);

}  // namespace dtrain::serve
