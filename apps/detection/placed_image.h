// A single image on its canvas, preprocessed as in evaluation.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "apps/detection/detections.h"
#include "dtrain/data/detection_geometry.h"
#include "dtrain/data/image.h"
#include "dtrain/data/preprocess.h"
#include "dtrain/data/resize.h"

namespace dtrain::detection {

// Placement of an image.
struct Placement {
  data::ImageSize size{};                       // size of the image on its canvas
  int64_t canvas_height = 0, canvas_width = 0;  // size of the canvas, at least as large
  Filter<float> rows{}, columns{};              // scale from the image to that size
  bool rounds_pixels = true;                    // see data::ResizeRule
};
// Resized to `size`, at the upper left of `canvas`.
Placement placement_of(const data::ImageSize& image, const data::ImageSize& size, const data::ImageSize& canvas,
                       bool rounds_pixels = true);

struct PlacedImage {
  data::Image original{};  // size in the file
  Tensor pixels{};         // [1, h, w, 3] u8, or f32 if not rounded; resized, padded with zeros
  Tensor sizes{};          // [1, 2] f32, as models::DetectionTruth::sizes
  ImagePlace place{};
};

// Both throw Error(Fault::data) if the file cannot be read or exceeds kMaxRecordBytes, or the image cannot be decoded.
std::vector<std::byte> read_image_file(const std::string& path);
// `notes`: output of decoding notes.
data::Image decode_image(std::span<const std::byte> bytes, const data::DecodeOptions& options = {},
                         data::SampleNotes* notes = nullptr);

PlacedImage place_image(Context& context, data::Image image, const Placement& placement);

}  // namespace dtrain::detection
