// The positives among the regions that a two-stage detector is trained on, and what each weighs in a mean.
#pragma once

#include <tuple>

#include "libdtrain/ops/roi_samples.h"

namespace dtrain {

// Over what a loss of regions is a mean.
enum class MeanOver {
  batch,   // the regions of all images alike
  images,  // those of each image first, and then the images
};

// Weights [n * s] f32 of the regions of n images in a mean over `samples` of which only positives add something: 1 /
// the number of regions for positives, else 0.
void region_weights(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean, const Tensor& weights);

// Room for m positives of all images, in order; those beyond are left out, and room that is left over is padding.
struct PositiveSamples {
  Tensor rois;     // [m, 4] f32; padding is 0
  Tensor images;   // [m] i32; -1: padding
  Tensor classes;  // [m] i32; -1: padding
  Tensor truth;    // [m] i32; -1: padding
  Tensor weights;  // [m] f32: in a mean over positives; padding is 0

  auto tensors() const { return std::tie(rois, images, classes, truth, weights); }
};
// Of the samples of `images` images.
void gather_positives(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean,
                      const PositiveSamples& positives);

// [n * p] i32: the image of each of p places of n images, of which counts [n] i32 are taken; -1 for the others.
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
