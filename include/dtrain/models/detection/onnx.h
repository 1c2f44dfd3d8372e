// Export of a Detector as an ONNX model from an image to its detections.
#pragma once

#include <string>

#include "dtrain/core/encoded_image.h"
#include "dtrain/models/detection/detector.h"

namespace dtrain::models {

// Preprocessing of the image and mapping of detections back to its pixels.
struct OnnxImage {
  int64_t height = 0, width = 0;                // of the image
  int64_t canvas_height = 0, canvas_width = 0;  // multiples of 32
  // Resizing filters from the image to its size on the canvas; the remainder is 0 after normalisation. Empty for a size
  // that stays.
  Filter<float> rows{}, columns{};
  bool rounds_pixels = true;  // round pixels to integers after resizing
  int64_t resized_height = 0, resized_width = 0;
  float mean[3] = {0, 0, 0}, deviation[3] = {1, 1, 1};  // of red, green and blue from 0 to 255
  // Pasting of masks: boxes are expanded to whole pixels first (torchvision), else masks are sampled at pixel centres
  // (TensorPack).
  bool whole_pixels = true;
};

// Writes an ONNX model of opset 17 with the outputs of Detector::detect():
//   image [3, height, width] f32, RGB from 0 to 1 (as in torchvision's exported models; rounded to 256 steps)
//   boxes [d, 4] f32 (x1, y1, x2, y2 in pixels of the image), scores [d] f32, labels [d] i64, by descending score
//   masks [d, 1, height, width] f32, probability of each pixel; absent for a detector without masks
// The file is a ResultFile. Throws Error(Fault::config) for a parameter that the graph does not use (with its name), an
// image that does not fit its canvas, and a model larger than 2 GiB.
void export_onnx(const ParameterStore& store, const Detector& detector, const OnnxImage& image,
                 const std::string& path);

}  // namespace dtrain::models
