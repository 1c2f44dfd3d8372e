#include "data/whole_image.h"

#include <algorithm>
#include <memory>

#include "libdtrain/core/error.h"

namespace dtrain::data {

WholeImage::WholeImage(int height, int width) : height_(height), width_(width) {
  DT_CHECK(width > 0 && height > 0, "preprocessing to an image of ", width, "x", height, " pixels");
}

void WholeImage::write(const ImageView& image, float* pixels) {
  if (image.width == width_ && image.height == height_) {
    for (int y = 0; y < image.height; ++y) pixels = std::copy_n(image.row(y), 3 * image.width, pixels);
    return;
  }
  make_filter({image.width, width_, 0, width_}, ResizeMethod::bilinear, across_);
  make_filter({image.height, height_, 0, height_}, ResizeMethod::bilinear, down_);
  resample(image, across_, down_, rows_, pixels);
}

MakePreprocess make_whole_image_preprocess(int height, int width, Orientation orientation) {
  struct Worker {
    ImageDecoder decoder;
    WholeImage writer;
  };
  const WholeImage writer(height, width);
  const auto make = [writer, orientation]() -> Preprocess {
    return [orientation, worker = std::make_shared<Worker>(Worker{ImageDecoder({.orientation = orientation}), writer})](
               std::span<const std::byte> encoded, std::span<const Box>, const SampleKey&, void* pixels) {
      const ImageInfo info = worker->decoder.open(encoded);
      worker->writer.write(worker->decoder.decode(), static_cast<float*>(pixels));
      return notes_of(info, worker->decoder, orientation);
    };
  };
  return {{height, width, 3}, DType::f32, make};
}

}  // namespace dtrain::data
