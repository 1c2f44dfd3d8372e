// Augmentation: an encoded image and a key become the pixels of one sample. Pure functions of (image, key).
#pragma once

#include <cstdint>
#include <span>

#include "data/image.h"
#include "data/preprocess.h"
#include "data/resize.h"
#include "libdtrain/core/rng.h"
#include "libdtrain/core/types.h"

namespace dtrain::data {

// The random draws of one sample: equal for every rank and worker.
RandomStream sample_stream(const SampleKey& key);

// TensorFlow's sample_distorted_bounding_box with tf_cnn_benchmarks' numbers: aspect U[0.75, 1.33), area 0.05 to 1 of
// the image, up to 100 tries for a crop that covers a tenth of some box (of the image, where there are none); else the
// whole image. As there, the last possible offset is never drawn. Throws Error(Fault::data) on a box outside [0, 1].
Window sample_distorted_box(int width, int height, std::span<const Box> boxes, RandomStream& random);

// torchvision's RandomResizedCrop: area U[0.08, 1), log-uniform aspect 3/4 to 4/3, 10 tries, else the central crop of
// the nearest allowed aspect.
Window random_resized_crop(int width, int height, RandomStream& random);

enum class Preset : uint8_t {
  // tf_cnn_benchmarks. Training: sample_distorted_box, flip, resize; evaluation: the central crop of the image resized,
  // aspect kept, to 1.145 times the size. Fast IDCT; plain upsampling in evaluation. Pixels are f32 in [0, 255].
  tf_cnn,
  // torchvision's reference recipe. Training: random_resized_crop, flip; evaluation: resize to 256/224 of the size and
  // central crop. PIL's antialiased bilinear, exact IDCT. Pixels are u8.
  torchvision,
  // TensorFlow's official models, preprocess_image of official/r1/resnet/imagenet_preprocessing.py. Training:
  // sample_distorted_box, flip, resize; evaluation: the central crop of the image resized, aspect kept, to 256 pixels
  // on
  // its shorter side, which is for sizes up to 255. Exact IDCT, bilinear without antialiasing. Pixels are f32 in
  // [0, 255].
  official,
};

// `round_robin`: one of the methods before it, by the sample's position in the stream. `crop`: nothing is resized; in
// training and evaluation alike the central part of the image is taken, with black around a smaller image.
enum class TfResize : uint8_t { nearest, bilinear, bicubic, area, round_robin, crop };

struct PreprocessOptions {
  Preset preset = Preset::tf_cnn;
  bool training = true;
  int height = 224, width = 224;
  // tf_cnn only:
  TfResize resize = TfResize::bilinear;
  bool distort_color = false;  // brightness, saturation, hue, contrast; training only
  bool distort_in_yiq = true;  // else saturation and hue in HSV
  bool use_boxes = true;
  ImageLimits limits = {};
};

// The type of the pixels: u8 for torchvision, else f32.
DType pixel_type(Preset preset);

// How a preset has JPEGs decoded.
DecodeOptions decode_options(const PreprocessOptions& options);

// Makes Preprocess objects that write [height, width, 3] pixels; each keeps a decoder and buffers from image to image.
MakePreprocess make_preprocess(const PreprocessOptions& options);
// The same for a device. It decodes with other roundings: its pixels are a few levels off. Throws where colours are to
// be distorted, which devices do not do.
MakeDefer make_defer(const PreprocessOptions& options);

}  // namespace dtrain::data
