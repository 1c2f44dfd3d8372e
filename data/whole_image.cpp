#include "data/whole_image.h"

#include <algorithm>
#include <memory>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

class WholeImagePreprocessor final : public Preprocessor {
 public:
  WholeImagePreprocessor(int height, int width, Orientation orientation)
      : orientation_(orientation), decoder_({.orientation = orientation}), writer_(height, width) {}

  SampleNotes run(std::span<const std::byte> encoded, std::span<const NormalizedBox>, const SampleKey&,
                  void* pixels) override {
    const ImageInfo info = decoder_.open(encoded);
    writer_.write(decoder_.decode(), static_cast<float*>(pixels));
    return notes_of(info, decoder_, orientation_);
  }

 private:
  Orientation orientation_;
  ImageDecoder decoder_;
  WholeImage writer_;
};

}  // namespace

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

PreprocessorFactory make_whole_image_preprocess(int height, int width, Orientation orientation) {
  const WholeImage checked(height, width);
  const auto make = [height, width, orientation] {
    return std::make_unique<WholeImagePreprocessor>(height, width, orientation);
  };
  return {{height, width, 3}, DType::f32, make};
}

}  // namespace dtrain::data
