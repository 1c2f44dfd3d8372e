// Interface between data-set readers and preprocessing.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "data/dataset.h"
#include "data/image.h"

namespace dtrain::data {

// Box corners as fractions of the image: 0 <= min <= max <= 1.
struct Box {
  float ymin = 0, xmin = 0, ymax = 0, xmax = 0;
};

// Decodes `encoded`, crops and augments it into `pixels`. `boxes`: objects that a random crop should overlap. A pure
// function of its arguments. Throws Error(Fault::data).
using Preprocess = std::function<SampleNotes(std::span<const std::byte> encoded, std::span<const Box> boxes,
                                             const SampleKey& key, void* pixels)>;
// Notes on an image that `decoder` has decoded with `orientation`.
inline SampleNotes notes_of(const ImageInfo& image, const ImageDecoder& decoder, Orientation orientation) {
  const bool oriented = image.orientation != 1;
  return {decoder.damage(), oriented, oriented && orientation == Orientation::apply};
}
// Factory of per-worker Preprocess functions, each with its decoder and buffers, and their output type.
struct MakePreprocess {
  Shape shape;  // of the pixels: [height, width, 3]
  DType dtype;
  std::function<Preprocess()> make;
  Preprocess operator()() const { return make(); }
};

// Deferred decoding: fills `image` with the device's input for the same pixels. Returns nothing if only Preprocess
// supports the image; throws as Preprocess does for errors in the header.
using Defer = std::function<std::optional<SampleNotes>(std::span<const std::byte> encoded, std::span<const Box> boxes,
                                                       const SampleKey& key, EncodedImage& image)>;
using MakeDefer = std::function<Defer()>;

}  // namespace dtrain::data
