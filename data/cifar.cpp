// CIFAR-10's preprocessing.
#include "data/cifar.h"

#include <algorithm>
#include <memory>

#include "data/augment.h"
#include "data/image.h"
#include "data/resize.h"

namespace dtrain::data {
namespace {

// What one worker keeps from image to image.
class Cifar {
 public:
  explicit Cifar(const CifarOptions& options) : options_(options) {}

  bool operator()(std::span<const std::byte> encoded, const SampleKey& key, float* pixels) {
    decoder_.open(encoded);
    ImageView view = decoder_.decode();
    const bool damaged = !decoder_.warning().empty();
    if (options_.training) {
      if (augmented_.width != view.width || augmented_.height != view.height)
        augmented_ = Image(view.width, view.height);
      RandomStream random = sample_stream(key);
      pad_crop_flip(view, random, augmented_.pixels.data());
      view = augmented_.view();
    }
    write(view, pixels);
    return damaged;
  }

 private:
  void write(const ImageView& view, float* pixels) {
    if (view.width == options_.width && view.height == options_.height) {
      for (int y = 0; y < view.height; ++y) pixels = std::copy_n(view.row(y), 3 * view.width, pixels);
      return;
    }
    make_filter({view.width, options_.width, 0, options_.width}, ResizeMethod::bilinear, across_);
    make_filter({view.height, options_.height, 0, options_.height}, ResizeMethod::bilinear, down_);
    resample(view, across_, down_, rows_, pixels);
  }

  CifarOptions options_;
  ImageDecoder decoder_;
  Image augmented_;
  Filter<float> across_, down_;
  std::vector<float> rows_;
};

}  // namespace

MakePreprocess make_cifar_preprocess(const CifarOptions& options) {
  DT_CHECK(options.width > 0 && options.height > 0, "preprocessing to an image of ", options.width, "x", options.height,
           " pixels");
  const auto make = [options]() -> Preprocess {
    return [cifar = std::make_shared<Cifar>(options)](std::span<const std::byte> encoded, std::span<const Box>,
                                                      const SampleKey& key, void* pixels) {
      return (*cifar)(encoded, key, static_cast<float*>(pixels));
    };
  };
  return {{{options.height, options.width, 3}, DType::f32}, make};
}

}  // namespace dtrain::data
