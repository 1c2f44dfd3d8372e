// Preprocessor: an encoded image to the pixels of a sample. Interface between data-set readers and preprocessing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "dtrain/data/dataset.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

// Box corners as fractions of the image: 0 <= min <= max <= 1.
struct NormalizedBox {
  float ymin = 0, xmin = 0, ymax = 0, xmax = 0;
};

// Per-worker preprocessing, with its decoder and buffers. Not thread-safe.
class Preprocessor {
 public:
  virtual ~Preprocessor() = default;
  // Decodes `encoded`, crops and augments it into `pixels`, which have the factory's shape and type. `boxes`: objects
  // that a random crop should overlap. A pure function of its arguments. Throws Error(Fault::data).
  virtual SampleNotes run(std::span<const std::byte> encoded, std::span<const NormalizedBox> boxes,
                          const SampleKey& key, void* pixels) = 0;
  // Deferred decoding: fills `image` with the device's input for the same pixels. Returns nothing if only run()
  // supports the image; throws as run() does for errors in the header.
  virtual std::optional<SampleNotes> defer(std::span<const std::byte>, std::span<const NormalizedBox>, const SampleKey&,
                                           EncodedImage&) {
    return {};
  }
};

// Factory of per-worker Preprocessors, and the shape and type of their pixels.
struct PreprocessorFactory {
  Shape shape;  // [height, width, 3]
  DType dtype;
  std::function<std::unique_ptr<Preprocessor>()> make;
  std::unique_ptr<Preprocessor> operator()() const { return make(); }
};

// Notes on an image that `decoder` has decoded with `orientation`.
inline SampleNotes notes_of(const ImageInfo& image, const ImageDecoder& decoder, Orientation orientation) {
  const bool oriented = image.orientation != 1;
  return {decoder.damage(), oriented, oriented && orientation == Orientation::apply};
}

// Deprecated names, removed with the next minor version: docs/migration.md.
using Box [[deprecated("renamed: NormalizedBox")]] = NormalizedBox;
using MakePreprocess [[deprecated("renamed: PreprocessorFactory")]] = PreprocessorFactory;
class [[deprecated("use std::unique_ptr<Preprocessor>")]] Preprocess {
 public:
  Preprocess(std::unique_ptr<Preprocessor> preprocessor) : preprocessor_(std::move(preprocessor)) {}
  SampleNotes operator()(std::span<const std::byte> encoded, std::span<const NormalizedBox> boxes, const SampleKey& key,
                         void* pixels) const {
    return preprocessor_->run(encoded, boxes, key, pixels);
  }

 private:
  std::shared_ptr<Preprocessor> preprocessor_;
};

}  // namespace dtrain::data
