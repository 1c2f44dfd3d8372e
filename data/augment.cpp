// The presets: which window is decoded, how it is resized, what happens to its colours.
#include "data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <type_traits>

#include "data/color.h"
#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

int round_to_int(float value) { return static_cast<int>(std::lrint(value)); }
int round_to_int(double value) { return static_cast<int>(std::lrint(value)); }

// Pixels with corners as the sampler of boxes counts them.
struct Corners {
  int x0, y0, x1, y1;
  float area() const { return static_cast<float>(int64_t{x1 - x0} * (y1 - y0)); }
};

Corners corners(const Box& box, int width, int height) {
  for (const float side : {box.xmin, box.ymin, box.xmax, box.ymax})
    if (!(side >= 0 && side <= 1))
      throw Error(Fault::data, concat("bounding box (xmin ", box.xmin, ", ymin ", box.ymin, ", xmax ", box.xmax,
                                      ", ymax ", box.ymax, "): coordinates must be in [0, 1]"));
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  return {static_cast<int>(box.xmin * w), static_cast<int>(box.ymin * h), static_cast<int>(box.xmax * w),
          static_cast<int>(box.ymax * h)};
}

// The share of `object` that lies in `crop`; 0 for an object of no pixels.
float covered(const Corners& object, const Window& crop) {
  if (object.area() < 1) return 0;
  const Corners common{std::max(object.x0, crop.x), std::max(object.y0, crop.y),
                       std::min(object.x1, crop.x + crop.width), std::min(object.y1, crop.y + crop.height)};
  return common.x0 > common.x1 || common.y0 > common.y1 ? 0 : common.area() / object.area();
}

// One try of the sampler for a given aspect; false where the limits of area cannot be met.
bool draw_crop(int width, int height, float aspect, RandomStream& random, Window& crop) {
  constexpr float kMinArea = 0.05f, kMaxArea = 1.0f;
  const float min_area = kMinArea * static_cast<float>(width) * static_cast<float>(height);
  const float max_area = kMaxArea * static_cast<float>(width) * static_cast<float>(height);
  const auto width_of = [&](int h) { return round_to_int(static_cast<float>(h) * aspect); };
  int low = round_to_int(std::sqrt(min_area / aspect)), high = round_to_int(std::sqrt(max_area / aspect));
  if (width_of(high) > width) {
    constexpr double kEpsilon = 1e-7;
    high = static_cast<int>((width + 0.5 - kEpsilon) / static_cast<double>(aspect));
    if (width_of(high) > width) --high;
  }
  high = std::min(high, height);
  int h = std::min(low, high);
  if (h < high) h += static_cast<int>(random.below(static_cast<uint32_t>(high - h + 1)));
  const auto area_of = [&](int rows) { return static_cast<float>(width_of(rows)) * static_cast<float>(rows); };
  // Rounding may have left the limits by one row.
  if (area_of(h) < min_area) ++h;
  if (area_of(h) > max_area) --h;
  const int w = width_of(h);
  if (area_of(h) < min_area || area_of(h) > max_area || w > width || h > height || w <= 0 || h <= 0) return false;
  crop = {0, 0, w, h};
  if (h < height) crop.y = static_cast<int>(random.below(static_cast<uint32_t>(height - h)));
  if (w < width) crop.x = static_cast<int>(random.below(static_cast<uint32_t>(width - w)));
  return true;
}

}  // namespace

RandomStream sample_stream(const SampleKey& key) {
  // Streams of one epoch are a run of neighbours that starts at a scrambled place.
  const Philox::Block start = Philox::block(key.seed, key.epoch, 0);
  return {key.seed, (uint64_t{start[0]} << 32 | start[1]) + key.sample};
}

Window sample_distorted_box(int width, int height, std::span<const Box> boxes, RandomStream& random) {
  constexpr float kMinAspect = 0.75f, kMaxAspect = 1.33f, kMinCovered = 0.1f;
  constexpr int kTries = 100;
  const Box image{0, 0, 1, 1};
  if (boxes.empty()) boxes = {&image, 1};
  for (const Box& box : boxes) corners(box, width, height);
  Window crop;
  for (int i = 0; i < kTries; ++i) {
    const float aspect = random.uniform(kMinAspect, kMaxAspect);
    if (!draw_crop(width, height, aspect, random, crop)) continue;
    for (const Box& box : boxes)
      if (covered(corners(box, width, height), crop) >= kMinCovered) return crop;
  }
  return {0, 0, width, height};
}

Window random_resized_crop(int width, int height, RandomStream& random) {
  constexpr double kMinArea = 0.08, kMinAspect = 3.0 / 4, kMaxAspect = 4.0 / 3;
  constexpr int kTries = 10;
  const double area = static_cast<double>(width) * height;
  for (int i = 0; i < kTries; ++i) {
    const double target = area * (kMinArea + (1 - kMinArea) * random.uniform());
    const double aspect = std::exp(std::log(kMinAspect) + (std::log(kMaxAspect) - std::log(kMinAspect)) *
                                                              static_cast<double>(random.uniform()));
    const int w = round_to_int(std::sqrt(target * aspect)), h = round_to_int(std::sqrt(target / aspect));
    if (w <= 0 || w > width || h <= 0 || h > height) continue;
    const auto y = static_cast<int>(random.below(static_cast<uint32_t>(height - h + 1)));
    const auto x = static_cast<int>(random.below(static_cast<uint32_t>(width - w + 1)));
    return {x, y, w, h};
  }
  const double aspect = static_cast<double>(width) / height;
  Window crop{0, 0, width, height};
  if (aspect < kMinAspect) crop.height = round_to_int(width / kMinAspect);
  if (aspect > kMaxAspect) crop.width = round_to_int(height * kMaxAspect);
  crop.y = (height - crop.height) / 2;
  crop.x = (width - crop.width) / 2;
  return crop;
}

namespace {

// Scales to [0, 1] and back; the order of the changes alternates along the stream of samples.
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

ResizeMethod method_of(TfResize resize, uint64_t position) {
  constexpr std::array methods{ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::bicubic,
                               ResizeMethod::area};
  if (resize == TfResize::crop) return ResizeMethod::nearest;
  return methods[resize == TfResize::round_robin ? position % methods.size() : static_cast<size_t>(resize)];
}

constexpr float kOfficialSize = 256;  // of the shorter side in evaluations

// What is resized: a window of the image to a window of the result, which begins at (left, top) of the sample.
struct Geometry {
  Window source;
  Axis x, y;
  int left = 0, top = 0;
};

// As tf.image.resize_image_with_crop_or_pad of the image, mirrored first where `flip` is set.
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

Geometry evaluation_geometry(const ImageInfo& image, const PreprocessOptions& o) {
  int width = 0, height = 0, left = 0, top = 0;
  if (o.preset != Preset::torchvision) {
    const bool official = o.preset == Preset::official;
    const auto w = static_cast<float>(image.width), h = static_cast<float>(image.height);
    const float ratio = official ? kOfficialSize / std::min(w, h)
                                 : std::max(static_cast<float>(o.height) / h, static_cast<float>(o.width) / w);
    const float margin = official ? 1 : 1.145f;
    width = static_cast<int>(w * ratio * margin);
    height = static_cast<int>(h * ratio * margin);
    left = (width - o.width) / 2;
    top = (height - o.height) / 2;
  } else {
    const int size = std::max(o.width, o.height) * 256 / 224;
    const bool wide = image.width > image.height;
    const int64_t longer = int64_t{size} * std::max(image.width, image.height) / std::min(image.width, image.height);
    width = wide ? static_cast<int>(longer) : size;
    height = wide ? size : static_cast<int>(longer);
    left = round_to_int((width - o.width) / 2.0);
    top = round_to_int((height - o.height) / 2.0);
  }
  return {{0, 0, image.width, image.height},
          {image.width, width, left, o.width, false},
          {image.height, height, top, o.height, false}};
}

// Decodes the part of the image that the filters read and makes them relative to it.
template <class Weight>
ImageView decode_for(ImageDecoder& decoder, Resampling<Weight>& by) {
  const int left = by.x.begin(), top = by.y.begin();
  const Window window{left, top, by.x.end() - left, by.y.end() - top};
  by.x.shift(left);
  by.y.shift(top);
  return decoder.decode(window);
}

// One worker's Preprocess.
class Augment {
 public:
  explicit Augment(const PreprocessOptions& options) : options_(options), decoder_(decode_options(options)) {}

  bool operator()(std::span<const std::byte> encoded, std::span<const Box> boxes, const SampleKey& key, void* pixels) {
    const ImageInfo image = decoder_.open(encoded);
    RandomStream random = sample_stream(key);
    if (options_.preset == Preset::torchvision) {
      plan(image, boxes, key, random, to_u8_);
      const ImageView view = decode_for(decoder_, to_u8_);
      resample(view, to_u8_.x, to_u8_.y, byte_rows_, static_cast<uint8_t*>(pixels));
    } else {
      auto* const values = static_cast<float*>(pixels);
      plan(image, boxes, key, random, to_f32_);
      const ImageView view = decode_for(decoder_, to_f32_);
      resample(view, to_f32_.x, to_f32_.y, rows_, values);
      if (options_.training && options_.distort_color)
        distort(values, int64_t{options_.width} * options_.height, options_.distort_in_yiq, key.position, random);
    }
    return !decoder_.warning().empty();
  }

  bool defer(std::span<const std::byte> encoded, std::span<const Box> boxes, const SampleKey& key, EncodedImage& out) {
    const ImageInfo image = decoder_.open(encoded);
    if (!decoder_.suits_hardware()) return false;
    RandomStream random = sample_stream(key);
    if (options_.preset == Preset::torchvision)
      plan(image, boxes, key, random, out.to_u8);
    else
      plan(image, boxes, key, random, out.to_f32);
    out.width = image.width;
    out.height = image.height;
    out.jpeg.assign(encoded.begin(), encoded.end());
    return true;
  }

 private:
  Geometry geometry_of(const ImageInfo& image, std::span<const Box> boxes, RandomStream& random) const {
    if (options_.preset == Preset::tf_cnn && options_.resize == TfResize::crop)
      return central_geometry(image, options_, options_.training && random.uniform() < 0.5f);
    if (!options_.training) return evaluation_geometry(image, options_);
    if (!options_.use_boxes) boxes = {};
    const Window crop = options_.preset == Preset::torchvision
                            ? random_resized_crop(image.width, image.height, random)
                            : sample_distorted_box(image.width, image.height, boxes, random);
    return training_geometry(crop, options_, random.uniform() < 0.5f);
  }

  // The filters of a sample, over the whole image.
  template <class Weight>
  void plan(const ImageInfo& image, std::span<const Box> boxes, const SampleKey& key, RandomStream& random,
            Resampling<Weight>& to) const {
    const Geometry geometry = geometry_of(image, boxes, random);
    if constexpr (std::is_same_v<Weight, float>) {
      const ResizeMethod method = method_of(options_.resize, key.position);
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
  std::vector<float> rows_;
  std::vector<uint8_t> byte_rows_;
};

}  // namespace

DType pixel_type(Preset preset) { return preset == Preset::torchvision ? DType::u8 : DType::f32; }

DecodeOptions decode_options(const PreprocessOptions& options) {
  return {.fast_dct = options.preset == Preset::tf_cnn,
          .fancy_upsampling = options.preset != Preset::tf_cnn || options.training,
          .limits = options.limits};
}

namespace {

void check(const PreprocessOptions& options) {
  DT_CHECK(options.width > 0 && options.height > 0, "preprocessing to an image of ", options.width, "x", options.height,
           " pixels");
  DT_CHECK(!options.distort_color || options.preset == Preset::tf_cnn,
           "colour distortion belongs to the tf_cnn preset");
  // Truncation may leave a pixel less than kOfficialSize.
  DT_CHECK(options.preset != Preset::official || options.training ||
               std::max(options.width, options.height) < static_cast<int>(kOfficialSize),
           "the official models' evaluation takes its crop from 256 pixels on the shorter side, found a size of ",
           options.width, "x", options.height);
}

}  // namespace

MakePreprocess make_preprocess(const PreprocessOptions& options) {
  check(options);
  const auto make = [options]() -> Preprocess {
    // std::function wants something it can copy.
    return [augment = std::make_shared<Augment>(options)](
               std::span<const std::byte> encoded, std::span<const Box> boxes, const SampleKey& key, void* pixels) {
      return (*augment)(encoded, boxes, key, pixels);
    };
  };
  return {{options.height, options.width, 3}, pixel_type(options.preset), make};
}

MakeDefer make_defer(const PreprocessOptions& options) {
  check(options);
  DT_CHECK(!options.training || !options.distort_color, "colours are distorted on the host only");
  return [options]() -> Defer {
    return [augment = std::make_shared<Augment>(options)](
               std::span<const std::byte> encoded, std::span<const Box> boxes, const SampleKey& key,
               EncodedImage& image) { return augment->defer(encoded, boxes, key, image); };
  };
}

}  // namespace dtrain::data
