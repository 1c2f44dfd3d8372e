// Preprocessing without cropping, for images stored at about the model's size.
#pragma once

#include <vector>

#include "dtrain/data/image.h"
#include "dtrain/data/preprocess.h"
#include "dtrain/data/resize.h"

namespace dtrain::data {

// Writes images unchanged or, for another size, resized by TensorFlow's bilinear filter. Reuses buffers: one per
// worker.
class WholeImage {
 public:
  // Throws Error unless the size is positive.
  WholeImage(int height, int width);
  // To [height, width, 3] in [0, 255].
  void write(const ImageView& image, float* pixels);

 private:
  int height_, width_;
  Filter<float> across_, down_;
  std::vector<float> rows_;
};

// Decodes an image and writes all of it as f32, resized if necessary.
PreprocessorFactory make_whole_image_preprocess(int height, int width, Orientation orientation = Orientation::ignore);

}  // namespace dtrain::data
