// Positive regions of a two-stage detector's training samples, and loss weights.
#pragma once

#include <tuple>

#include "dtrain/ops/roi_samples.h"

namespace dtrain {

// Averaging of a loss over regions.
enum class MeanOver {
  batch,   // over all regions of the batch
  images,  // over the regions of each image, then over images
};

// Loss weights [n * s] f32 of the regions of n images, for a mean over `samples` to which only positives contribute: 1
// / number of regions for positives, else 0.
void region_weights(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean, const Tensor& weights);

// Up to m positives of all images, in order; excess is dropped, unused rows are padding.
struct PositiveSamples {
  Tensor rois;     // [m, 4] f32; padding is 0
  Tensor images;   // [m] i32; -1: padding
  Tensor classes;  // [m] i32; -1: padding
  Tensor truth;    // [m] i32; -1: padding
  Tensor weights;  // [m] f32: weights for a mean over positives; padding is 0

  auto tensors() const { return std::tie(rois, images, classes, truth, weights); }
};
// From the samples of `images` images.
void gather_positives(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean,
                      const PositiveSamples& positives);

// [n * p] i32: image of each of p places in n images if it is below counts [n] i32, else -1.
void images_of_places(Context& context, const Tensor& counts, const Tensor& images);

namespace cpu {
void region_weights(Context&, const RoiSamples& samples, int64_t images, MeanOver mean, const Tensor& weights);
void gather_positives(Context&, const RoiSamples& samples, int64_t images, MeanOver mean, const PositiveSamples&);
void images_of_places(Context&, const Tensor& counts, const Tensor& images);
}  // namespace cpu

namespace cuda {
decltype(cpu::region_weights) region_weights;
decltype(cpu::gather_positives) gather_positives;
decltype(cpu::images_of_places) images_of_places;
}  // namespace cuda

}  // namespace dtrain
