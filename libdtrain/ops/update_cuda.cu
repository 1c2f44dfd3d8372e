// CUDA arm of the update: a pass over the gradients for their norm, a verdict, and one pass that updates everything.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/update.h"
#include "libdtrain/ops/update_math.h"

namespace dtrain::cuda {
namespace {

// A block works on one piece, its threads on groups of kGroup neighbouring elements in turn.
constexpr int kThreads = 256, kGroup = kLanes<float>;
constexpr int kBlocks = 4;         // on a multiprocessor: leaves the registers that the division of Adam needs
constexpr int kSumThreads = 1024;  // in the one block that adds up what the pieces came to

struct Squares {
  double gradient, value;
};

// What the kernel that has seen all squares tells the one that updates.
struct Verdict {
  UpdateFactors factors;
  bool apply;
};

// Whole groups of a piece. Segments of a ParameterStore start on a multiple of kGroup; others go element by element.
__device__ inline int groups_of(const UpdatePiece& piece) {
  return piece.begin % kGroup == 0 ? piece.count / kGroup : 0;
}

// Over the block, in every thread.
__device__ inline double sum_of_squares(const float* x, const UpdatePiece& piece) {
  x += piece.begin;
  const int thread = static_cast<int>(threadIdx.x), groups = groups_of(piece);
  double lanes[kGroup] = {};
#pragma unroll 4
  for (int i = thread; i < groups; i += kThreads) {
    const auto group = load(x + kGroup * i);
    for (int lane = 0; lane < kGroup; ++lane) lanes[lane] += square(group.lane[lane]);
  }
  for (int i = kGroup * groups + thread; i < piece.count; i += kThreads) lanes[0] += square(x[i]);
  return block_sum((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), shared_memory<double>());
}

__global__ void __launch_bounds__(kThreads)
    measure_kernel(const UpdatePiece* pieces, const float* values, const float* grads, Squares* squares) {
  const UpdatePiece piece = pieces[blockIdx.x];
  const double gradient = sum_of_squares(grads, piece);
  const double value = piece.parameter >= 0 ? sum_of_squares(values, piece) : 0;
  if (threadIdx.x == 0) squares[blockIdx.x] = {gradient, value};
}

// One block. Norms, what the update is to do, and what becomes of the StepState.
__global__ void __launch_bounds__(kSumThreads)
    verdict_kernel(UpdateOptions options, StepScalars* scalars, const Squares* squares, int pieces,
                   const UpdateRun* runs, int run_count, float* norms, Verdict* verdict) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  const float scale = unscale(*scalars);
  for (int r = thread / kWarp; r < run_count; r += kSumThreads / kWarp) {
    const UpdateRun run = runs[r];
    Squares sum{};
    for (int i = lane; i < run.pieces; i += kWarp) {
      const Squares piece = squares[run.first_piece + i];
      sum.gradient += piece.gradient;
      sum.value += piece.value;
    }
    sum = {warp_sum(sum.gradient), warp_sum(sum.value)};
    if (lane != 0) continue;
    norms[1 + 2 * run.parameter] = norm_of(sum.value, 1);
    norms[2 + 2 * run.parameter] = norm_of(sum.gradient, scale);
  }
  double all = 0;
  for (int i = thread; i < pieces; i += kSumThreads) all += squares[i].gradient;
  all = block_sum(all, shared_memory<double>());
  if (thread != 0) return;
  const float norm = norm_of(all, scale);
  norms[0] = norm;
  verdict->factors = update_factors(options, *scalars, norm);
  verdict->apply = settle(*scalars, norm);
}

// `copy` is unused where Copy is float, as `m` and `s` are where the rule has no such state.
template <class Copy>
struct Pointers {
  float* v;
  const float* g;
  float *m, *s;
  Copy* copy;
};

template <UpdateRule rule, class Copy>
__device__ inline void update_one(const UpdateFactors& f, const Pointers<Copy>& arenas, int64_t i) {
  float v = arenas.v[i], m = 0, s = 0;
  if constexpr (state_arenas(rule) > 0) m = arenas.m[i];
  if constexpr (state_arenas(rule) > 1) s = arenas.s[i];
  update_element<rule>(f, arenas.g[i], v, m, s);
  arenas.v[i] = v;
  if constexpr (state_arenas(rule) > 0) arenas.m[i] = m;
  if constexpr (state_arenas(rule) > 1) arenas.s[i] = s;
  if constexpr (!std::is_same_v<Copy, float>) arenas.copy[i] = from_float<Copy>(v);
}

// `n` groups from element `first` on, kThreads groups apart.
template <UpdateRule rule, int n, class Copy>
__device__ inline void update_groups(const UpdateFactors& f, const Pointers<Copy>& arenas, int64_t first) {
  constexpr int kStride = kThreads * kGroup;
  Pack<float> g[n], v[n], m[n], s[n];
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const int64_t at = first + kStride * i;
    g[i] = load(arenas.g + at);
    v[i] = load(arenas.v + at);
    if constexpr (state_arenas(rule) > 0) m[i] = load(arenas.m + at);
    if constexpr (state_arenas(rule) > 1) s[i] = load(arenas.s + at);
  }
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const int64_t at = first + kStride * i;
    Pack<Copy, kGroup> copy;
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      update_element<rule>(f, g[i].lane[lane], v[i].lane[lane], m[i].lane[lane], s[i].lane[lane]);
      if constexpr (!std::is_same_v<Copy, float>) copy.lane[lane] = from_float<Copy>(v[i].lane[lane]);
    }
    store(arenas.v + at, v[i]);
    if constexpr (state_arenas(rule) > 0) store(arenas.m + at, m[i]);
    if constexpr (state_arenas(rule) > 1) store(arenas.s + at, s[i]);
    if constexpr (!std::is_same_v<Copy, float>) store(arenas.copy + at, copy);
  }
}

template <UpdateRule rule, class Copy>
__global__ void __launch_bounds__(kThreads, kBlocks)
    update_kernel(UpdateOptions options, const Verdict* verdict, const float* norms, const UpdatePiece* pieces,
                  Pointers<Copy> arenas) {
  if (!verdict->apply) return;
  // The gradients that were measured last are read first: they may still be in the cache.
  const UpdatePiece piece = pieces[gridDim.x - 1 - blockIdx.x];
  const UpdateFactors f = piece_factors(options, verdict->factors, piece, norms);
  const int thread = static_cast<int>(threadIdx.x), groups = groups_of(piece);
  // Groups whose loads are in flight together: as many as registers hold without spilling.
  constexpr int kAtOnce = state_arenas(rule) > 1 ? 1 : 2;
  int i = thread;
  for (; i + (kAtOnce - 1) * kThreads < groups; i += kAtOnce * kThreads)
    update_groups<rule, kAtOnce>(f, arenas, piece.begin + kGroup * i);
  for (; i < groups; i += kThreads) update_groups<rule, 1>(f, arenas, piece.begin + kGroup * i);
  for (int e = kGroup * groups + thread; e < piece.count; e += kThreads) update_one<rule>(f, arenas, piece.begin + e);
}

__global__ void __launch_bounds__(kThreads)
    l2_piece_kernel(const UpdatePiece* pieces, const float* values, double* losses) {
  const UpdatePiece piece = pieces[blockIdx.x];
  const double squares = piece.weight_decay > 0 ? sum_of_squares(values, piece) : 0;
  if (threadIdx.x == 0) losses[blockIdx.x] = static_cast<double>(piece.weight_decay) / 2 * squares;
}

__global__ void __launch_bounds__(kSumThreads) l2_sum_kernel(const double* losses, int pieces, float* loss) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < pieces; i += kSumThreads) sum += losses[i];
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) *loss = static_cast<float>(sum);
}

template <UpdateRule rule, class Copy>
void launch_update(const Context& context, const UpdateOptions& options, const Tensor& verdict, const Tensor& norms,
                   const UpdatePlan& plan, const UpdateArenas& arenas) {
  auto state = [&](size_t i) { return i < arenas.state.size() ? arenas.state[i].data<float>() : nullptr; };
  const Pointers<Copy> pointers{arenas.values.data<float>(), arenas.grads.data<float>(), state(0), state(1),
                                arenas.copy ? arenas.copy.data<Copy>() : nullptr};
  launch(context, update_kernel<rule, Copy>, {static_cast<unsigned>(plan.pieces().size()), kThreads}, options,
         static_cast<const Verdict*>(verdict.raw()), norms.data<float>(),
         static_cast<const UpdatePiece*>(plan.device_pieces().raw()), pointers);
}

}  // namespace

void update(Context& context, const UpdateOptions& options, const UpdatePlan& plan, const UpdateArenas& arenas,
            const Tensor& norms) {
  const auto pieces = static_cast<unsigned>(plan.pieces().size());
  const Tensor squares = context.empty({static_cast<int64_t>(pieces * sizeof(Squares))}, DType::u8);
  const Tensor verdict = context.empty({static_cast<int64_t>(sizeof(Verdict))}, DType::u8);
  if (pieces > 0)
    launch(context, measure_kernel, {pieces, kThreads, kThreads / kWarp * sizeof(double)},
           static_cast<const UpdatePiece*>(plan.device_pieces().raw()), arenas.values.data<float>(),
           arenas.grads.data<float>(), static_cast<Squares*>(squares.raw()));
  launch(context, verdict_kernel, {1, kSumThreads, kSumThreads / kWarp * sizeof(double)}, options, context.scalars(),
         static_cast<const Squares*>(squares.raw()), pieces, static_cast<const UpdateRun*>(plan.device_runs().raw()),
         plan.runs().size(), norms.data<float>(), static_cast<Verdict*>(verdict.raw()));
  if (pieces == 0) return;
  dispatch_rule(options.rule, [&](auto constant) {
    constexpr UpdateRule rule = decltype(constant)::value;
    dispatch_floating(arenas.copy ? arenas.copy.dtype() : DType::f32, "update", [&](auto copy) {
      launch_update<rule, decltype(copy)>(context, options, verdict, norms, plan, arenas);
    });
  });
}

void l2_loss(Context& context, const UpdatePlan& plan, const Tensor& values, const Tensor& loss) {
  const auto pieces = static_cast<unsigned>(plan.pieces().size());
  const Tensor losses = context.empty({static_cast<int64_t>(pieces * sizeof(double))}, DType::u8);
  auto* const pointer = static_cast<double*>(losses.raw());
  if (pieces > 0)
    launch(context, l2_piece_kernel, {pieces, kThreads, kThreads / kWarp * sizeof(double)},
           static_cast<const UpdatePiece*>(plan.device_pieces().raw()), values.data<float>(), pointer);
  launch(context, l2_sum_kernel, {1, kSumThreads, kSumThreads / kWarp * sizeof(double)}, pointer, pieces,
         loss.data<float>());
}

}  // namespace dtrain::cuda
