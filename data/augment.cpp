// Crop windows, resizing and colour augmentation of the presets.
#include "dtrain/data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <type_traits>

#include "data/color.h"
#include "data/crop_and_resize.h"
#include "dtrain/core/error.h"

namespace dtrain::data {

RandomStream sample_stream(const SampleKey& key) {
  // Streams of one epoch and repetition are consecutive from a scrambled start.
  const Philox::Block start = Philox::block(key.seed, key.epoch, key.repetition);
  return {key.seed, (uint64_t{start[0]} << 32 | start[1]) + key.sample};
}

namespace {

// Scales to [0, 1] and back; the order of the colour ops alternates with the sample's position.
void distort(float* pixels, int64_t count, bool in_yiq, uint64_t position, RandomStream& random) {
  const auto turn = [&] {
    if (in_yiq) {
      const float angle = random.uniform(-0.2f, 0.2f) * std::numbers::pi_v<float>;
      turn_in_yiq(pixels, count, angle, random.uniform(0.5f, 1.5f));
    } else {
      scale_saturation(pixels, count, random.uniform(0.5f, 1.5f));
      rotate_hue(pixels, count, random.uniform(-0.2f, 0.2f));
    }
  };
  const auto contrast = [&] { scale_contrast(pixels, count, random.uniform(0.5f, 1.5f)); };
  for (int64_t i = 0; i < 3 * count; ++i) pixels[i] /= 255.0f;
  add_brightness(pixels, count, random.uniform(-32.0f / 255, 32.0f / 255));
  if (position % 2 == 0) {
    turn();
    contrast();
  } else {
    contrast();
    turn();
  }
  for (int64_t i = 0; i < 3 * count; ++i) pixels[i] = std::clamp(pixels[i], 0.0f, 1.0f) * 255.0f;
}

// AWS's --increased_aug with default values, on [0, 255].
void distort_as_aws(float* pixels, int64_t count, RandomStream& random) {
  add_brightness(pixels, count, random.uniform(-0.3f, 0.3f));
  const float angle = random.uniform(-0.13f, 0.13f) * std::numbers::pi_v<float>;
  turn_in_yiq(pixels, count, angle, random.uniform(0.6f, 1.4f));
  scale_contrast(pixels, count, random.uniform(0.6f, 1.4f));
}

ResizeMethod method_of(TfResize resize, uint64_t position) {
  constexpr std::array methods{ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::bicubic,
                               ResizeMethod::area};
  if (resize == TfResize::crop) return ResizeMethod::nearest;
  return methods[resize == TfResize::round_robin ? position % methods.size() : static_cast<size_t>(resize)];
}

// Mapping from a source window to a window of the sample at (left, top).
struct Geometry {
  Window source;
  Axis x, y;
  int left = 0, top = 0;
};

// tf.image.resize_image_with_crop_or_pad; with `flip`, the image is mirrored first.
Geometry central_geometry(const ImageInfo& image, const PreprocessOptions& o, bool flip) {
  const int width = std::min(image.width, o.width), height = std::min(image.height, o.height);
  return {{0, 0, image.width, image.height},
          {image.width, image.width, (image.width - width) / 2, width, flip},
          {image.height, image.height, (image.height - height) / 2, height, false},
          (o.width - width) / 2,
          (o.height - height) / 2};
}

Geometry training_geometry(const Window& crop, const PreprocessOptions& o, bool flip) {
  return {crop, {crop.width, o.width, 0, o.width, flip}, {crop.height, o.height, 0, o.height, false}};
}

// Central crop of the image resized to width x height. An odd margin is larger at the right and bottom (TensorFlow) or
// rounded half to even (torchvision).
Geometry central_crop(const ImageInfo& image, const PreprocessOptions& o, int width, int height) {
  const auto before = [&](int all, int wanted) {
    return o.preset == Preset::torchvision ? static_cast<int>(std::lrint((all - wanted) / 2.0)) : (all - wanted) / 2;
  };
  return {{0, 0, image.width, image.height},
          {image.width, width, before(width, o.width), o.width, false},
          {image.height, height, before(height, o.height), o.height, false}};
}

Geometry evaluation_geometry(const ImageInfo& image, const PreprocessOptions& o) {
  const auto w = static_cast<float>(image.width), h = static_cast<float>(image.height);
  const int size = std::max(o.width, o.height) * 256 / 224, shorter = std::min(image.width, image.height);
  if (o.preset == Preset::tf_cnn) {
    const float ratio = std::max(static_cast<float>(o.height) / h, static_cast<float>(o.width) / w);
    return central_crop(image, o, static_cast<int>(w * ratio * 1.145f), static_cast<int>(h * ratio * 1.145f));
  }
  if (o.preset == Preset::official) {
    const float ratio = static_cast<float>(size) / static_cast<float>(shorter);
    // Rounding may shrink small images by a pixel.
    return central_crop(image, o, std::max(static_cast<int>(w * ratio), o.width),
                        std::max(static_cast<int>(h * ratio), o.height));
  }
  const bool wide = image.width > image.height;
  const auto longer = static_cast<int>(int64_t{size} * std::max(image.width, image.height) / shorter);
  return central_crop(image, o, wide ? longer : size, wide ? size : longer);
}

// Source region of aws, in coordinates of CornerAxis.
NormalizedBox aws_box(const PreprocessOptions& o, RandomStream& random) {
  constexpr float kShown = 0.8f;
  if (!o.training) return {0.1f, 0.1f, 0.9f, 0.9f};
  const auto nominal = [](int size) { return static_cast<int>(std::lrint(static_cast<float>(size) / kShown)); };
  const int width = nominal(o.width), height = nominal(o.height);
  const Window crop = sample_distorted_box(width, height, {}, random, kAwsLimits);
  const auto share = [](int part, int all) { return static_cast<float>(part) / static_cast<float>(all); };
  return {share(crop.y, height), share(crop.x, width), share(crop.y + crop.height, height),
          share(crop.x + crop.width, width)};
}

// Decodes the region that the filters read, and makes the filters relative to it.
template <class Weight>
ImageView decode_for(ImageDecoder& decoder, Resampling<Weight>& by) {
  const int left = by.x.begin(), top = by.y.begin();
  const Window window{left, top, by.x.end() - left, by.y.end() - top};
  by.x.shift(left);
  by.y.shift(top);
  return decoder.decode(window);
}

class PresetPreprocessor final : public Preprocessor {
 public:
  explicit PresetPreprocessor(const PreprocessOptions& options)
      : options_(options), decoder_(decode_options(options)) {}

  SampleNotes run(std::span<const std::byte> encoded, std::span<const NormalizedBox> boxes, const SampleKey& key,
                  void* pixels) override {
    const ImageInfo image = decoder_.open(encoded);
    RandomStream random = sample_stream(key);
    if (options_.preset == Preset::aws) {
      crop_as_aws(image, random, static_cast<uint8_t*>(pixels));
    } else if (options_.preset == Preset::torchvision) {
      plan(image, boxes, key, random, to_u8_);
      const ImageView view = decode_for(decoder_, to_u8_);
      resample(view, to_u8_.x, to_u8_.y, byte_rows_, static_cast<uint8_t*>(pixels));
    } else {
      auto* const values = static_cast<float*>(pixels);
      plan(image, boxes, key, random, to_f32_);
      const ImageView view = decode_for(decoder_, to_f32_);
      resample(view, to_f32_.x, to_f32_.y, rows_, values);
      if (distorts()) distort(values, count(), options_.distort_in_yiq, key.position, random);
    }
    return notes_of(image, decoder_, options_.orientation);
  }

  std::optional<SampleNotes> defer(std::span<const std::byte> encoded, std::span<const NormalizedBox> boxes,
                                   const SampleKey& key, EncodedImage& out) override {
    if (options_.preset == Preset::aws || distorts()) return {};
    const ImageInfo image = decoder_.open(encoded);
    if (!decoder_.suits_hardware()) return {};
    RandomStream random = sample_stream(key);
    if (options_.preset == Preset::torchvision)
      plan(image, boxes, key, random, out.to_u8);
    else
      plan(image, boxes, key, random, out.to_f32);
    out.width = image.width;
    out.height = image.height;
    out.jpeg.assign(encoded.begin(), encoded.end());
    return SampleNotes{.oriented = image.orientation != 1};
  }

 private:
  bool distorts() const { return options_.training && options_.distort_color; }
  int64_t count() const { return int64_t{options_.width} * options_.height; }

  void crop_as_aws(const ImageInfo& image, RandomStream& random, uint8_t* pixels) {
    const NormalizedBox box = aws_box(options_, random);
    const bool flip = options_.training && random.uniform() < 0.5f;
    interpolate_corners({box.xmin, box.xmax, image.width, options_.width, flip}, along_);
    interpolate_corners({box.ymin, box.ymax, image.height, options_.height, false}, down_);
    const int left = along_.begin(), top = down_.begin();
    const ImageView view = decoder_.decode({left, top, along_.end(image.width) - left, down_.end(image.height) - top});
    along_.shift(left);
    down_.shift(top);
    values_.resize(static_cast<size_t>(3 * count()));
    interpolate(view, along_, down_, values_.data());
    if (distorts()) distort_as_aws(values_.data(), count(), random);
    std::ranges::transform(values_, pixels, [](float v) { return static_cast<uint8_t>(std::clamp(v, 0.0f, 255.0f)); });
  }

  Geometry geometry_of(const ImageInfo& image, std::span<const NormalizedBox> boxes, RandomStream& random) const {
    if (options_.preset == Preset::tf_cnn && options_.resize == TfResize::crop)
      return central_geometry(image, options_, options_.training && random.uniform() < 0.5f);
    if (!options_.training) return evaluation_geometry(image, options_);
    if (!options_.use_boxes) boxes = {};
    const Window crop = options_.preset == Preset::torchvision
                            ? random_resized_crop(image.width, image.height, random)
                            : sample_distorted_box(image.width, image.height, boxes, random);
    return training_geometry(crop, options_, random.uniform() < 0.5f);
  }

  // Filters of a sample in coordinates of the whole image.
  template <class Weight>
  void plan(const ImageInfo& image, std::span<const NormalizedBox> boxes, const SampleKey& key, RandomStream& random,
            Resampling<Weight>& to) const {
    const Geometry geometry = geometry_of(image, boxes, random);
    if constexpr (std::is_same_v<Weight, float>) {
      const ResizeMethod method =
          options_.preset == Preset::tf_cnn ? method_of(options_.resize, key.position) : ResizeMethod::bilinear;
      make_filter(geometry.x, method, to.x);
      make_filter(geometry.y, method, to.y);
      pad_with_zeros(to.x, geometry.left, options_.width);
      pad_with_zeros(to.y, geometry.top, options_.height);
    } else {
      make_filter(geometry.x, to.x);
      make_filter(geometry.y, to.y);
    }
    to.x.shift(-geometry.source.x);
    to.y.shift(-geometry.source.y);
  }

  PreprocessOptions options_;
  ImageDecoder decoder_;
  Resampling<float> to_f32_;
  Resampling<int32_t> to_u8_;
  Interpolation along_, down_;
  std::vector<float> rows_, values_;
  std::vector<uint8_t> byte_rows_;
};

}  // namespace

DType pixel_type(Preset preset) {
  return preset == Preset::torchvision || preset == Preset::aws ? DType::u8 : DType::f32;
}

DecodeOptions decode_options(const PreprocessOptions& options) {
  const bool plain = options.preset == Preset::aws || (options.preset == Preset::tf_cnn && !options.training);
  return {.fast_dct = options.preset != Preset::torchvision,
          .fancy_upsampling = !plain,
          .limits = options.limits,
          .orientation = options.orientation};
}

namespace {

void check(const PreprocessOptions& options) {
  DT_CHECK(options.width > 0 && options.height > 0, "preprocessing to an image of ", options.width, "x", options.height,
           " pixels");
  DT_CHECK(!options.distort_color || options.preset == Preset::tf_cnn || options.preset == Preset::aws,
           "colour distortion belongs to the presets tf_cnn and aws");
}

}  // namespace

PreprocessorFactory make_preprocess(const PreprocessOptions& options) {
  check(options);
  const auto make = [options] { return std::make_unique<PresetPreprocessor>(options); };
  return {{options.height, options.width, 3}, pixel_type(options.preset), make};
}

}  // namespace dtrain::data
