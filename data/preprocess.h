// The seam between the readers of data sets and what makes a network's input of an encoded image.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "data/dataset.h"
#include "data/image.h"

namespace dtrain::data {

// Corners as fractions of the image: 0 <= min <= max <= 1.
struct Box {
  float ymin = 0, xmin = 0, ymax = 0, xmax = 0;
};

// Decodes `encoded`, crops and augments it into `pixels`. `boxes` are the objects that a random crop should keep in
// sight. A pure function of its arguments. Throws Error(Fault::data).
using Preprocess = std::function<SampleNotes(std::span<const std::byte> encoded, std::span<const Box> boxes,
                                             const SampleKey& key, void* pixels)>;
// What a Preprocess returns of an image that `decoder` has decoded by `orientation`.
inline SampleNotes notes_of(const ImageInfo& image, const ImageDecoder& decoder, Orientation orientation) {
  const bool oriented = image.orientation != 1;
  return {decoder.damage(), oriented, oriented && orientation == Orientation::apply};
}
// Makes the Preprocess of one worker, with decoder and buffers of its own, and says what all of them write.
struct MakePreprocess {
  Shape shape;  // the pixels': [height, width, 3]
  DType dtype;
  std::function<Preprocess()> make;
  Preprocess operator()() const { return make(); }
};

// Leaves to a device what Preprocess does: `image` is what the same pixels are made of. Returns nothing where only
// Preprocess can make them; throws as that does where it sees no more than the header.
using Defer = std::function<std::optional<SampleNotes>(std::span<const std::byte> encoded, std::span<const Box> boxes,
                                                       const SampleKey& key, EncodedImage& image)>;
using MakeDefer = std::function<Defer()>;

}  // namespace dtrain::data
