// The seam between the readers of data sets and what makes a network's input of an encoded image.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "data/dataset.h"

namespace dtrain::data {

// Corners as fractions of the image: 0 <= min <= max <= 1.
struct Box {
  float ymin = 0, xmin = 0, ymax = 0, xmax = 0;
};

// Decodes `encoded`, crops and augments it into `pixels`; the decoder's warning where it had one, else "". `boxes` are
// the objects that a random crop should keep in sight. A pure function of its arguments. Throws Error(Fault::data).
using Preprocess = std::function<std::string(std::span<const std::byte> encoded, std::span<const Box> boxes,
                                             const SampleKey& key, void* pixels)>;
// Makes the Preprocess of one worker, with decoder and buffers of its own, and says what all of them write.
struct MakePreprocess {
  Shape shape;  // the pixels': [height, width, 3]
  DType dtype;
  std::function<Preprocess()> make;
  Preprocess operator()() const { return make(); }
};

// Leaves to a device what Preprocess does: `image` is what the same pixels are made of. False where only Preprocess can
// make them; throws as that does where it sees no more than the header.
using Defer = std::function<bool(std::span<const std::byte> encoded, std::span<const Box> boxes, const SampleKey& key,
                                 EncodedImage& image)>;
using MakeDefer = std::function<Defer()>;

}  // namespace dtrain::data
