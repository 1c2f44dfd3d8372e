// CUDA kernels of matching: one thread per box, ground truths staged in shared memory. keep_best needs a kernel before,
// which finds the largest IoU of each ground truth. Sampling: one kernel computes all random words, then one block per
// image selects.
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/match_boxes_kernels.h"
#include "libdtrain/ops/match_math.h"
#include "libdtrain/ops/selection_kernels.cuh"

namespace dtrain::cuda {
namespace {

constexpr int kTruths = 128;

struct Matching {
  MatchOptions options;
  const float* boxes;
  int64_t box_stride;  // between images; 0: shared by all
  const int32_t* valid;
  const float* truth;
  const int32_t* counts;
  const float* sizes;
  int64_t t, g;
  float* best;  // [n, g]: largest IoU per ground truth; null without keep_best
  int32_t* matched;
};

// In shared memory: a tile of an image's ground truths.
struct Truths {
  Box box[kTruths];
  float area[kTruths], best[kTruths];
};

// Box of a thread; empty, overlapping nothing, if ignored.
struct OwnBox {
  Box box;
  float area;
  bool ignored;
};

__device__ OwnBox own_box(const Matching& m, int64_t image, int64_t i) {
  const float margin = size_margin(m.options.plus_one);
  OwnBox own{{INFINITY, INFINITY, -INFINITY, -INFINITY}, 0, true};
  if (i < (m.valid != nullptr ? within(m.valid[image], m.t) : m.t)) {
    const Box box = box_at(m.boxes + image * m.box_stride + 4 * i);
    own.ignored = is_padding(box) ||
                  (m.options.inside_only && !is_inside(box, m.sizes[2 * image], m.sizes[2 * image + 1], margin));
    if (!own.ignored) own.box = box;
  }
  own.area = box_area(own.box, margin);
  return own;
}

// visit(index, iou, position in `truths`) for each ground truth of the image, called by all threads of the block.
template <class Visit>
__device__ void for_each_truth(const Matching& m, int64_t image, const OwnBox& own, Visit&& visit) {
  Truths& truths = *shared_memory<Truths>();
  const float margin = size_margin(m.options.plus_one);
  const int64_t count = within(m.counts[image], m.g);
  for (int64_t first = 0; first < count; first += kTruths) {
    const int here = static_cast<int>(count - first < kTruths ? count - first : kTruths);
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.x); j < here; j += kThreads) {
      const int64_t at = image * m.g + first + j;
      truths.box[j] = box_at(m.truth + 4 * at);
      truths.area[j] = box_area(truths.box[j], margin);
      truths.best[j] = m.best != nullptr ? m.best[at] : 0;
    }
    __syncthreads();
    for (int j = 0; j < here; ++j)
      visit(first + j, box_overlap(own.box, own.area, truths.box[j], truths.area[j], margin), truths.best[j]);
  }
}

// Best IoUs start at 0. Non-negative floats are ordered like their bits, so atomicMax on integers applies.
__global__ void __launch_bounds__(kThreads) best_kernel(Matching m) {
  const int64_t image = blockIdx.y;
  const OwnBox own = own_box(m, image, int64_t{blockIdx.x} * kThreads + threadIdx.x);
  int* const best = reinterpret_cast<int*>(m.best + image * m.g);
  for_each_truth(m, image, own, [&](int64_t number, float iou, float) {
    if (!__any_sync(kAllLanes, iou > 0)) return;
    const int top = warp_max(__float_as_int(iou));
    if (threadIdx.x % kWarp == 0) atomicMax(best + number, top);
  });
}

__global__ void __launch_bounds__(kThreads) match_kernel(Matching m) {
  const int64_t image = blockIdx.y, i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const OwnBox own = own_box(m, image, i);
  float best = 0;
  int32_t truth = 0;
  bool kept = false;
  for_each_truth(m, image, own, [&](int64_t number, float iou, float best_of_truth) {
    if (iou > best) best = iou, truth = static_cast<int32_t>(number);
    kept = kept || (iou > 0 && iou == best_of_truth);
  });
  if (i >= m.t) return;
  const bool none = within(m.counts[image], m.g) == 0;
  const int32_t match = none ? kBackground : match_of(m.options, best, truth, kept);
  m.matched[image * m.t + i] = own.ignored ? kIgnored : match;
}

__global__ void __launch_bounds__(kThreads)
    draw_words_kernel(const StepScalars* scalars, uint64_t stream, uint64_t first_row, int64_t t, uint32_t* words) {
  const int64_t image = blockIdx.y, quads = (t + 3) / 4, threads = int64_t{gridDim.x} * kThreads;
  const DrawKeys draws(scalars->seed, scalars->step, stream, first_row + static_cast<uint64_t>(image));
  for (int64_t quad = int64_t{blockIdx.x} * kThreads + threadIdx.x; quad < quads; quad += threads) {
    const Philox::Block block = draws.block(quad);
#pragma unroll
    for (int lane = 0; lane < 4; ++lane)
      if (4 * quad + lane < t) words[image * t + 4 * quad + lane] = block[static_cast<size_t>(lane)];
  }
}

// Sets all positives, or all background, except the `wanted` of smallest keys to kIgnored. Returns the number kept.
__device__ int draw(bool positive, int wanted, int64_t t, const uint32_t* words, int32_t* matched) {
  const auto key = [=](int64_t i) {
    const bool own = positive ? matched[i] >= 0 : matched[i] == kBackground;
    return own ? ~DrawKeys::key(words[i], i) : uint64_t{0};
  };
  const Selection selection = select_largest(t, wanted, key, *shared_memory<SelectionScratch>());
  for_each_key(t, key, [&](int64_t i, uint64_t found) {
    if (wanted <= 0 || found < selection.threshold) matched[i] = kIgnored;
  });
  return selection.chosen;
}

__global__ void __launch_bounds__(kSelectionThreads)
    sample_kernel(SampleOptions options, int64_t t, const uint32_t* words, int32_t* matched) {
  const int64_t first = int64_t{blockIdx.x} * t;
  const int positives = draw(true, options.positives, t, words + first, matched + first);
  draw(false, options.total - positives, t, words + first, matched + first);
}

}  // namespace

void match_boxes(Context& context, const Tensor& boxes, const Tensor& valid, const Tensor& truth, const Tensor& counts,
                 const Tensor& sizes, const MatchOptions& options, const Tensor& matched) {
  const int64_t n = matched.dim(0), t = matched.dim(1), g = truth.dim(1);
  const Tensor best = options.keep_best ? context.empty({n, g}) : Tensor();
  const Matching m{options,
                   boxes.data<float>(),
                   boxes.shape().rank() == 2 ? 0 : 4 * t,
                   valid ? valid.data<int32_t>() : nullptr,
                   truth.data<float>(),
                   counts.data<int32_t>(),
                   options.inside_only ? sizes.data<float>() : nullptr,
                   t,
                   g,
                   best ? best.data<float>() : nullptr,
                   matched.data<int32_t>()};
  const LaunchShape shape{
      {static_cast<unsigned>((t + kThreads - 1) / kThreads), static_cast<unsigned>(n)}, kThreads, sizeof(Truths)};
  if (best) {
    context.fill_zero(best);
    launch(context, best_kernel, shape, m);
  }
  launch(context, match_kernel, shape, m);
}

void sample_matches(Context& context, const SampleOptions& options, const Tensor& matched) {
  const int64_t n = matched.dim(0), t = matched.dim(1);
  const Tensor words = context.empty(matched.shape(), DType::i32);
  auto* const to = static_cast<uint32_t*>(words.raw());
  const unsigned blocks = blocks_for(context, (t + 3) / 4, kThreads);
  launch(context, draw_words_kernel, {{blocks, static_cast<unsigned>(n)}, kThreads}, context.scalars(), options.stream,
         options.first_row, t, to);
  launch(context, sample_kernel, {static_cast<unsigned>(n), kSelectionThreads, sizeof(SelectionScratch)}, options, t,
         to, matched.data<int32_t>());
}

}  // namespace dtrain::cuda
