// Preprocessing presets: decode, crop, flip and resize an encoded image into the pixels of one sample. Pure functions
// of (image, sample key).
#pragma once

#include <cstdint>

#include "dtrain/core/rng.h"
#include "dtrain/core/types.h"
#include "dtrain/data/crop_sampler.h"
#include "dtrain/data/image.h"
#include "dtrain/data/preprocess.h"
#include "dtrain/data/resize.h"

namespace dtrain::data {

// Random stream of a sample's crop and flip, equal for every rank and worker. Further augmentations use separate
// streams, so that enabling one does not change the others.
RandomStream sample_stream(const SampleKey& key);

enum class Preset : uint8_t {
  // tf_cnn_benchmarks. Training: sample_distorted_box, flip, resize. Evaluation: aspect-preserving resize to 1.145
  // times the size, central crop. Fast IDCT; plain chroma upsampling in evaluation. Pixels are f32 in [0, 255].
  tf_cnn,
  // torchvision's reference recipe. Training: random_resized_crop, flip. Evaluation: resize to 256/224 of the size,
  // central crop. PIL's antialiased bilinear filter, exact IDCT. Pixels are u8.
  torchvision,
  // TensorFlow's official models and the MLPerf reference. Training as in tf_cnn. Evaluation: aspect-preserving resize
  // to 256/224 of the size, central crop. Fast IDCT. Pixels are f32 in [0, 255].
  official,
  // AWS's train_imagenet_resnet_hvd.py. Training: sample_distorted_box with kAwsLimits, computed for a square of 1/0.8
  // of the size and stretched to the image, crop_and_resize, flip. Evaluation: central 80 % of width and height. Fast
  // IDCT, plain chroma upsampling. Pixels are u8, truncated instead of rounded.
  aws,
};
inline constexpr CropLimits kAwsLimits{0.08f, 1, 3.0f / 4, 4.0f / 3};

// `round_robin`: one of the methods before it, selected by the sample's position in the stream. `crop`: no resizing;
// training and evaluation take the central crop, with black padding around a smaller image.
enum class TfResize : uint8_t { nearest, bilinear, bicubic, area, round_robin, crop };

struct PreprocessOptions {
  Preset preset = Preset::tf_cnn;
  bool training = true;
  int height = 224, width = 224;
  TfResize resize = TfResize::bilinear;  // tf_cnn only
  // Random brightness, saturation, hue and contrast, in training with tf_cnn and aws only. For aws this is
  // --increased_aug, whose brightness changes by at most 0.3 of 255 levels, as in the original.
  bool distort_color = false;
  bool distort_in_yiq = true;  // tf_cnn: rotate in YIQ, else saturation and hue in HSV; aws always uses YIQ
  bool use_boxes = true;       // tf_cnn and official
  ImageLimits limits = {};
  Orientation orientation = Orientation::ignore;  // none of the original programs applies EXIF orientation
};

// Data type of the pixels.
DType pixel_type(Preset preset);

// JPEG decoding options of a preset.
DecodeOptions decode_options(const PreprocessOptions& options);

// Preprocessing of a preset. Decoding and resizing of baseline JPEGs can be deferred to the device, except for aws and
// with distort_color. The device's decoder rounds differently: pixels differ by a few levels.
PreprocessorFactory make_preprocess(const PreprocessOptions& options = {});

}  // namespace dtrain::data
