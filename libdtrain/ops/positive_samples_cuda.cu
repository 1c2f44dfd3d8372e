// CUDA kernels of positive samples: one block counts the few thousand regions.
#include "libdtrain/ops/positive_samples.h"
#include "libdtrain/ops/selection_kernels.cuh"

namespace dtrain::cuda {
namespace {

constexpr int kSelectionWarps = kSelectionThreads / kWarp;

// Number of `classes` [count] >= `least`, in every thread of the block.
__device__ int32_t count_of(const int32_t* classes, int64_t count, int32_t least, int32_t* scratch) {
  int32_t found = 0;
  for (int64_t i = threadIdx.x; i < count; i += kSelectionThreads) found += classes[i] >= least;
  return block_sum(found, scratch);
}

// Writes to `weights`, per image, the weight of a region of class >= `least` in the mean over such regions.
__device__ void weights_of_images(const int32_t* classes, int64_t s, int images, MeanOver mean, int32_t least,
                                  float* weights, int32_t* scratch) {
  int64_t all = 0;
  for (int image = 0; image < images; ++image) {
    const int64_t count = count_of(classes + image * s, s, least, scratch);
    all += count;
    if (threadIdx.x == 0) weights[image] = 1.0f / static_cast<float>(count > 0 ? images * count : 1);
  }
  __syncthreads();
  if (mean == MeanOver::batch)
    for (int image = threadIdx.x; image < images; image += kSelectionThreads)
      weights[image] = 1.0f / static_cast<float>(all > 0 ? all : 1);
  __syncthreads();
}

// Dynamic shared memory: kSelectionWarps integers and one weight per image.
__global__ void __launch_bounds__(kSelectionThreads)
    region_weights_kernel(const int32_t* classes, int64_t s, int images, MeanOver mean, float* weights) {
  int32_t* const scratch = shared_memory<int32_t>();
  float* const of = reinterpret_cast<float*>(scratch + kSelectionWarps);
  weights_of_images(classes, s, images, mean, 0, of, scratch);
  for (int64_t i = threadIdx.x; i < s * images; i += kSelectionThreads) weights[i] = classes[i] > 0 ? of[i / s] : 0.0f;
}

// Pointers of RoiSamples and PositiveSamples.
struct Regions {
  float* rois;
  int32_t *images, *classes, *truth;
};

__device__ void copy_region(const Regions& from, int64_t i, const Regions& to, int64_t row) {
  for (int side = 0; side < 4; ++side) to.rois[4 * row + side] = from.rois[4 * i + side];
  to.images[row] = from.images[i];
  to.classes[row] = from.classes[i];
  to.truth[row] = from.truth[i];
}

__device__ void clear_region(const Regions& to, int64_t row) {
  for (int side = 0; side < 4; ++side) to.rois[4 * row + side] = 0;
  to.images[row] = to.classes[row] = to.truth[row] = -1;
}

__global__ void __launch_bounds__(kSelectionThreads)
    gather_positives_kernel(Regions from, int64_t s, int images, MeanOver mean, Regions to, float* weights, int64_t m) {
  int32_t* const scratch = shared_memory<int32_t>();
  float* const of = reinterpret_cast<float*>(scratch + kSelectionWarps);
  weights_of_images(from.classes, s, images, mean, 1, of, scratch);
  int64_t row = 0;
  for (int64_t begin = 0; begin < s * images; begin += kSelectionThreads) {
    const int64_t i = begin + threadIdx.x;
    const bool positive = i < s * images && from.classes[i] > 0;
    const BlockRank rank = block_rank(positive, scratch);
    if (positive && row + rank.before < m) {
      copy_region(from, i, to, row + rank.before);
      weights[row + rank.before] = of[i / s];
    }
    row += rank.total;
  }
  for (int64_t i = row + threadIdx.x; i < m; i += kSelectionThreads) {
    clear_region(to, i);
    weights[i] = 0;
  }
}

__global__ void __launch_bounds__(kSelectionThreads)
    images_of_places_kernel(int64_t count, int64_t places, const int32_t* counts, int32_t* images) {
  const int64_t threads = int64_t{gridDim.x} * kSelectionThreads;
  for (int64_t i = int64_t{blockIdx.x} * kSelectionThreads + threadIdx.x; i < count; i += threads)
    images[i] = i % places < counts[i / places] ? static_cast<int32_t>(i / places) : -1;
}

size_t shared_bytes(int64_t images) { return (kSelectionWarps + static_cast<size_t>(images)) * sizeof(float); }

Regions pointers(const Tensor& rois, const Tensor& images, const Tensor& classes, const Tensor& truth) {
  return {rois.data<float>(), images.data<int32_t>(), classes.data<int32_t>(), truth.data<int32_t>()};
}

}  // namespace

void region_weights(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean, const Tensor& weights) {
  launch(context, region_weights_kernel, {1, kSelectionThreads, shared_bytes(images)}, samples.classes.data<int32_t>(),
         samples.classes.count() / images, static_cast<int>(images), mean, weights.data<float>());
}

void gather_positives(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean,
                      const PositiveSamples& positives) {
  launch(context, gather_positives_kernel, {1, kSelectionThreads, shared_bytes(images)},
         pointers(samples.rois, samples.images, samples.classes, samples.truth), samples.classes.count() / images,
         static_cast<int>(images), mean, pointers(positives.rois, positives.images, positives.classes, positives.truth),
         positives.weights.data<float>(), positives.weights.count());
}

void images_of_places(Context& context, const Tensor& counts, const Tensor& images) {
  if (images.count() == 0) return;
  launch(context, images_of_places_kernel, {blocks_for(context, images.count(), kSelectionThreads), kSelectionThreads},
         images.count(), images.count() / counts.count(), counts.data<int32_t>(), images.data<int32_t>());
}

}  // namespace dtrain::cuda
