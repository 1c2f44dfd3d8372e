// Preprocessing of images that are stored at about the size that a model takes: nothing is cut off them.
#pragma once

#include <vector>

#include "data/image.h"
#include "data/preprocess.h"
#include "data/resize.h"

namespace dtrain::data {

// Writes images as they are or, where the size asked for is another one, resized by TensorFlow's bilinear filter. Keeps
// its buffers from image to image: one per worker.
class WholeImage {
 public:
  // Throws Error where the size is not positive.
  WholeImage(int height, int width);
  // Into [height, width, 3], in [0, 255].
  void write(const ImageView& image, float* pixels);

 private:
  int height_, width_;
  Filter<float> across_, down_;
  std::vector<float> rows_;
};

// Decodes an image and writes it whole, as f32.
MakePreprocess make_whole_image_preprocess(int height, int width, Orientation orientation = Orientation::ignore);

}  // namespace dtrain::data
