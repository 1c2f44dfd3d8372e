// Augmentation: an encoded image and a key become the pixels of one sample. Pure functions of (image, key).
#pragma once

#include <cstdint>

#include "data/crop_sampler.h"
#include "data/image.h"
#include "data/preprocess.h"
#include "data/resize.h"
#include "libdtrain/core/rng.h"
#include "libdtrain/core/types.h"

namespace dtrain::data {

// The random draws of one sample: equal for every rank and worker. They are those of its crop and flip; what comes on
// top draws from a stream of its own, so that it changes nothing else.
RandomStream sample_stream(const SampleKey& key);

enum class Preset : uint8_t {
  // tf_cnn_benchmarks. Training: sample_distorted_box, flip, resize; evaluation: the central crop of the image resized,
  // aspect kept, to 1.145 times the size. Fast IDCT; plain upsampling in evaluation. Pixels are f32 in [0, 255].
  tf_cnn,
  // torchvision's reference recipe. Training: random_resized_crop, flip; evaluation: resize to 256/224 of the size and
  // central crop. PIL's antialiased bilinear, exact IDCT. Pixels are u8.
  torchvision,
  // TensorFlow's official models and MLPerf's reference. Training as in tf_cnn; evaluation: the central crop of the
  // image resized, aspect kept, to 256/224 of the size. Fast IDCT. Pixels are f32 in [0, 255].
  official,
  // AWS's train_imagenet_resnet_hvd.py. Training: sample_distorted_box by kAwsLimits on a square of 1/0.8 of the size,
  // whatever the image's shape is, stretched to the image, crop_and_resize, flip; evaluation: the central 80 % of width
  // and height. Fast IDCT, plain upsampling. Pixels are u8, cut off and not rounded.
  aws,
};
inline constexpr CropLimits kAwsLimits{0.08f, 1, 3.0f / 4, 4.0f / 3};

// `round_robin`: one of the methods before it, by the sample's position in the stream. `crop`: nothing is resized; in
// training and evaluation alike the central part of the image is taken, with black around a smaller image.
enum class TfResize : uint8_t { nearest, bilinear, bicubic, area, round_robin, crop };

struct PreprocessOptions {
  Preset preset = Preset::tf_cnn;
  bool training = true;
  int height = 224, width = 224;
  TfResize resize = TfResize::bilinear;  // tf_cnn only
  // Brightness, saturation, hue and contrast, in training with tf_cnn and aws only. That of aws is its --increased_aug:
  // brightness is changed by 0.3 of 255 levels at most, next to nothing.
  bool distort_color = false;
  bool distort_in_yiq = true;  // tf_cnn: else saturation and hue in HSV; aws has YIQ
  bool use_boxes = true;       // tf_cnn and official
  ImageLimits limits = {};
  Orientation orientation = Orientation::ignore;  // none of these programs turns images
};

// The type of the pixels.
DType pixel_type(Preset preset);

// How a preset has JPEGs decoded.
DecodeOptions decode_options(const PreprocessOptions& options);

// Makes Preprocess objects that write [height, width, 3] pixels; each keeps a decoder and buffers from image to image.
MakePreprocess make_preprocess(const PreprocessOptions& options);
// The same for a device. It decodes with other roundings: its pixels are a few levels off. Throws where colours are to
// be distorted, and for aws: devices do neither.
MakeDefer make_defer(const PreprocessOptions& options);

}  // namespace dtrain::data
