// Smaller images for faster reading: resized once and encoded anew, as the data-staging script
// tensorflow_image_resizer.py of aws-samples/deep-learning-models does it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image.h"

namespace dtrain::data {

struct ShrinkOptions {
  int size = 480;        // what the shorter side becomes, in pixels; smaller images keep theirs
  int quality = 85;      // of the JPEG, 1 to 100
  bool stretch = false;  // both sides become `size`, whatever they were
  // Turned images have no EXIF orientation left; else the new ones lose it unless they keep their bytes.
  Orientation orientation = Orientation::ignore;
  std::shared_ptr<std::atomic<uint64_t>> oriented{};  // counts the images whose EXIF orientation is not 1
};

struct ShrunkImage {
  std::vector<std::byte> jpeg;
  int width = 0, height = 0;
  std::string warning{}, damage{};  // of the decoder, which nobody sees in the new image
};

// The image by TensorFlow's bilinear filter as a JPEG of 4:2:0 with optimised Huffman tables. An RGB or grey JPEG that
// keeps its size keeps its bytes, too, where the new ones would not be fewer. Throws Error(Fault::data) where it does
// not decode.
ShrunkImage shrink_image(std::span<const std::byte> encoded, const ShrinkOptions& options);

// The same for the image of a record in the ImageNet schema: image/encoded, image/format, image/width and image/height
// are those of the new image, all other features stay. Throws Error(Fault::data), also for a record of object
// detection, whose masks and areas would not fit, and for a damaged image. `warning` is what the decoder warned of
// although all pixels are there, or "".
std::string shrink_record(std::span<const std::byte> record, const ShrinkOptions& options, std::string& warning);

}  // namespace dtrain::data
