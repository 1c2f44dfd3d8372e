// An image of a file on a canvas of its own, as evaluation would see it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "apps/detection/found.h"
#include "data/detection_geometry.h"
#include "data/image.h"
#include "data/preprocess.h"
#include "data/resize.h"

namespace dtrain::detection {

// Where an image is put.
struct Placement {
  data::ImageSize size{};                       // of the image on its canvas
  int64_t canvas_height = 0, canvas_width = 0;  // at least as large
  Filter<float> rows{}, columns{};              // from the image to that size
  bool rounds_pixels = true;                    // see data::ResizeRule
};
// Resized to `size`, at the upper left of `canvas`.
Placement placement_of(const data::ImageSize& image, const data::ImageSize& size, const data::ImageSize& canvas,
                       bool rounds_pixels = true);

struct PlacedImage {
  data::Image original{};  // as it is in the file
  Tensor pixels{};         // [1, h, w, 3] u8, or f32 where they are not rounded, resized, and zeros beyond the image
  Tensor sizes{};          // [1, 2] f32, as models::DetectionTruth::sizes
  ImagePlace place{};
};

// Both throw Error(Fault::data) where the file cannot be read, or has more than kMaxRecordBytes, or the image cannot be
// decoded.
std::vector<std::byte> read_image_file(const std::string& path);
// `notes` takes what is known of the image.
data::Image decode_image(std::span<const std::byte> bytes, const data::DecodeOptions& options = {},
                         data::SampleNotes* notes = nullptr);

PlacedImage place_image(Context& context, data::Image image, const Placement& placement);

}  // namespace dtrain::detection
