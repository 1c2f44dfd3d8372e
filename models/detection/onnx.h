// A Detector as an ONNX model: an image in, what was found in it out.
#pragma once

#include <string>

#include "libdtrain/core/encoded_image.h"
#include "models/detection/detector.h"

namespace dtrain::models {

// How an image becomes what the detector reads, and what it finds becomes pixels of the image again.
struct OnnxImage {
  int64_t height = 0, width = 0;                // of the image
  int64_t canvas_height = 0, canvas_width = 0;  // multiples of 32
  // From the image to its size on the canvas, whose rest is 0 after normalisation. Empty for a size that stays.
  Filter<float> rows{}, columns{};
  bool rounds_pixels = true;  // to whole numbers after resizing
  int64_t resized_height = 0, resized_width = 0;
  float mean[3] = {0, 0, 0}, deviation[3] = {1, 1, 1};  // of red, green and blue from 0 to 255
  // How masks become pixels: boxes grow to whole pixels first, as torchvision has it, else the centres of pixels are
  // looked up, as TensorPack has it.
  bool whole_pixels = true;
};

// Writes a model of opset 17 whose outputs are what Detector::detect() finds:
//   image [3, height, width] f32, RGB from 0 to 1 (as torchvision's exported models have it; rounded to 256 steps)
//   boxes [d, 4] f32 (x1, y1, x2, y2 in pixels of the image), scores [d] f32, labels [d] i64, all by descending score
//   masks [d, 1, height, width] f32, the probability of each pixel; a detector without masks has no such output
// The file is a ResultFile. Throws Error(Fault::config) for a detector that the graph cannot be the whole of, naming
// the parameter, for an image that does not fit its canvas, and for a model of 2 GiB.
void export_onnx(const ParameterStore& store, const Detector& detector, const OnnxImage& image,
                 const std::string& path);

}  // namespace dtrain::models
