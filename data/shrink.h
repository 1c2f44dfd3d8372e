// Downscaled images for faster reading, resized and re-encoded as by tensorflow_image_resizer.py of
// aws-samples/deep-learning-models.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dtrain/data/image.h"

namespace dtrain::data {

struct ShrinkOptions {
  int size = 480;        // new length of the shorter side, in pixels; smaller images keep their size
  int quality = 85;      // JPEG quality, 1 to 100
  bool stretch = false;  // resize both sides to `size`, ignoring aspect ratio
  // `apply` rotates the pixels and drops the EXIF orientation; `ignore` drops it from re-encoded images without
  // rotation.
  Orientation orientation = Orientation::ignore;
  std::shared_ptr<std::atomic<uint64_t>> oriented{};  // counter of images with an EXIF orientation other than 1
};

struct ShrunkImage {
  std::vector<std::byte> jpeg;
  int width = 0, height = 0;
  std::string warning{}, damage{};  // of the decoder; not visible in the new image
};

// Resizes with TensorFlow's bilinear filter and encodes a 4:2:0 JPEG with optimised Huffman tables. An RGB or grey JPEG
// of unchanged size keeps its bytes unless the new encoding is smaller. Throws Error(Fault::data) for an undecodable
// image.
ShrunkImage shrink_image(std::span<const std::byte> encoded, const ShrinkOptions& options);

// The same for a record in the ImageNet schema: updates image/encoded, image/format, image/width and image/height,
// keeps all other features. Throws Error(Fault::data) for a damaged image and for an object detection record, whose
// masks and areas would not fit. `warning`: the decoder's warning if no pixels are lost, or "".
std::string shrink_record(std::span<const std::byte> record, const ShrinkOptions& options, std::string& warning);

}  // namespace dtrain::data
