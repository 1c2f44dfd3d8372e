// CUDA kernels of the update: one pass over the gradients for their norm, a decision, one fused update pass.
#include "dtrain/ops/update.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/update_kernels.h"
#include "libdtrain/ops/update_norms_math.h"

namespace dtrain::cuda {
namespace {

// One block per piece; threads iterate over groups of kGroup neighbouring elements. kBlocks resident per multiprocessor
// leave enough registers for Adam's division.
[[maybe_unused]] constexpr int kBlocks = 4;
constexpr int kSumThreads = 1024;  // of the single block that reduces the pieces' sums

// Decision of the norm kernel for the update kernel.
struct Verdict {
  UpdateFactors factors;
  bool apply;
};

// Full groups of a piece. Segments of a ParameterStore start at a multiple of kGroup; others are processed
// element-wise.
__device__ inline int groups_of(const UpdatePiece& piece) {
  return piece.begin % kGroup == 0 ? piece.count / kGroup : 0;
}

// Block reduction, in every thread.
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

__device__ inline double sum_of_products(const float* x, const float* y, const UpdatePiece& piece) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < piece.count; i += kThreads)
    sum += static_cast<double>(x[piece.begin + i]) * static_cast<double>(y[piece.begin + i]);
  return block_sum(sum, shared_memory<double>());
}

__global__ void __launch_bounds__(kThreads) measure_kernel(UpdateOptions options, const UpdatePiece* pieces,
                                                           const float* values, const float* grads, UpdateSums* sums) {
  const UpdatePiece piece = pieces[blockIdx.x];
  UpdateSums sum;
  sum.gradient = sum_of_squares(grads, piece);
  if (piece.parameter >= 0) sum.value = sum_of_squares(values, piece);
  if (piece.parameter >= 0 && options.joint_norm) sum.product = sum_of_products(grads, values, piece);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Sums of a parameter from its pieces' sums; by a warp, in each lane.
__device__ inline UpdateSums sums_of(const UpdateRun& run, const UpdateSums* pieces, int lane) {
  UpdateSums sum;
  for (int i = lane; i < run.pieces; i += kWarp) {
    const UpdateSums piece = pieces[run.first_piece + i];
    sum.gradient += piece.gradient;
    sum.value += piece.value;
    sum.direction += piece.direction;
    sum.product += piece.product;
  }
  return {warp_sum(sum.gradient), warp_sum(sum.value), warp_sum(sum.direction), warp_sum(sum.product)};
}

// One block: norms, decision, and the new StepState.
__global__ void __launch_bounds__(kSumThreads)
    verdict_kernel(UpdateOptions options, StepScalars* scalars, const UpdatePiece* pieces, const UpdateSums* sums,
                   int piece_count, const UpdateRun* runs, int run_count, float* norms, Verdict* verdict) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  const float scale = unscale(*scalars);
  double all = 0;
  for (int i = thread; i < piece_count; i += kSumThreads) all += sums[i].gradient;
  all = block_sum(all, shared_memory<double>());
  const float norm = norm_of(all, scale), clip = norm_clip(options, norm);
  for (int r = thread / kWarp; r < run_count; r += kSumThreads / kWarp) {
    const UpdateRun run = runs[r];
    const UpdateSums sum = sums_of(run, sums, lane);
    if (lane != 0) continue;
    norms[1 + 2 * run.parameter] = norm_of(sum.value, 1);
    norms[2 + 2 * run.parameter] = second_norm(options, sum, scale, clip, pieces[run.first_piece].weight_decay);
  }
  if (thread != 0) return;
  norms[0] = norm;
  verdict->factors = update_factors(options, *scalars, norm);
  verdict->apply = settle(*scalars, norm);
}

// `copy` is unused if Copy is float; `m` and `s` if the rule has no such state.
template <class Copy>
struct Pointers {
  float* v;
  const float* g;
  float *m, *s;
  Copy* copy;
};

// First pass of LAMB: updates the moments, computes squared norms of the directions.
__global__ void __launch_bounds__(kThreads)
    moments_kernel(const Verdict* verdict, const UpdatePiece* pieces, Pointers<float> arenas, UpdateSums* sums) {
  if (!verdict->apply) return;
  const UpdatePiece piece = pieces[blockIdx.x];
  UpdateFactors f = verdict->factors;
  f.decay = piece.weight_decay;
  double squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < piece.count; i += kThreads) {
    const int64_t at = piece.begin + i;
    squares += square(lamb_moments(f, arenas.g[at], arenas.v[at], arenas.m[at], arenas.s[at]));
  }
  squares = block_sum(squares, shared_memory<double>());
  if (threadIdx.x == 0) sums[blockIdx.x].direction = squares;
}

// One block: norms of the directions.
__global__ void __launch_bounds__(kSumThreads)
    direction_norms_kernel(const Verdict* verdict, const UpdateSums* sums, const UpdateRun* runs, int run_count,
                           float* norms) {
  if (!verdict->apply) return;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  for (int r = thread / kWarp; r < run_count; r += kSumThreads / kWarp) {
    const double squares = sums_of(runs[r], sums, lane).direction;
    if (lane == 0) norms[2 + 2 * runs[r].parameter] = norm_of(squares, 1);
  }
}

template <UpdateRule rule, class Copy>
__device__ inline void update_one(const UpdateFactors& f, const Pointers<Copy>& arenas, int64_t i) {
  float v = arenas.v[i], m = 0, s = 0;
  if constexpr (state_arenas(rule) > 0) m = arenas.m[i];
  if constexpr (state_arenas(rule) > 1) s = arenas.s[i];
  update_element<rule>(f, arenas.g[i], v, m, s);
  arenas.v[i] = v;
  if constexpr (moves_state(rule) && state_arenas(rule) > 0) arenas.m[i] = m;
  if constexpr (moves_state(rule) && state_arenas(rule) > 1) arenas.s[i] = s;
  if constexpr (!std::is_same_v<Copy, float>) arenas.copy[i] = from_float<Copy>(v);
}

// `n` groups from element `first` on, with stride kThreads groups.
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
    if constexpr (moves_state(rule) && state_arenas(rule) > 0) store(arenas.m + at, m[i]);
    if constexpr (moves_state(rule) && state_arenas(rule) > 1) store(arenas.s + at, s[i]);
    if constexpr (!std::is_same_v<Copy, float>) store(arenas.copy + at, copy);
  }
}

template <UpdateRule rule, class Copy>
__global__ void __launch_bounds__(kThreads, kBlocks)
    update_kernel(UpdateOptions options, const Verdict* verdict, const float* norms, const UpdatePiece* pieces,
                  Pointers<Copy> arenas) {
  if (!verdict->apply) return;
  // In reverse order of the norm pass: its last gradients may still be in L2.
  const UpdatePiece piece = pieces[gridDim.x - 1 - blockIdx.x];
  const UpdateFactors f = piece_factors(options, verdict->factors, piece, norms);
  const int thread = static_cast<int>(threadIdx.x), groups = groups_of(piece);
  // Groups with loads in flight: as many as fit in registers without spills.
  constexpr int kAtOnce = state_arenas(rule) > 1 ? 1 : 2;
  int i = thread;
  for (; i + (kAtOnce - 1) * kThreads < groups; i += kAtOnce * kThreads)
    update_groups<rule, kAtOnce>(f, arenas, piece.begin + kGroup * i);
  for (; i < groups; i += kThreads) update_groups<rule, 1>(f, arenas, piece.begin + kGroup * i);
  for (int e = kGroup * groups + thread; e < piece.count; e += kThreads) update_one<rule>(f, arenas, piece.begin + e);
}

__global__ void __launch_bounds__(kThreads)
    average_kernel(const Verdict* verdict, const UpdatePiece* pieces, const float* values, float* average) {
  if (!verdict->apply) return;
  const UpdatePiece piece = pieces[blockIdx.x];
  const float share = verdict->factors.averaged;
  for (int i = static_cast<int>(threadIdx.x); i < piece.count; i += kThreads) {
    const int64_t at = piece.begin + i;
    average[at] += share * (values[at] - average[at]);
  }
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

// Device memory between the kernels of an update, and offsets of the pieces.
struct Launch {
  Launch(Context& c, const UpdatePlan& p)
      : context(c),
        plan(p),
        pieces(static_cast<unsigned>(p.pieces().size())),
        sums_bytes(c.empty({static_cast<int64_t>(pieces * sizeof(UpdateSums))}, DType::u8)),
        verdict_bytes(c.empty({static_cast<int64_t>(sizeof(Verdict))}, DType::u8)) {}

  const UpdatePiece* piece() const { return static_cast<const UpdatePiece*>(plan.device_pieces().raw()); }
  const UpdateRun* run() const { return static_cast<const UpdateRun*>(plan.device_runs().raw()); }
  UpdateSums* sums() const { return static_cast<UpdateSums*>(sums_bytes.raw()); }
  Verdict* verdict() const { return static_cast<Verdict*>(verdict_bytes.raw()); }

  Context& context;
  const UpdatePlan& plan;
  unsigned pieces;
  Tensor sums_bytes, verdict_bytes;
};

template <class Copy>
Pointers<Copy> pointers_to(const UpdateArenas& arenas) {
  auto state = [&](size_t i) { return i < arenas.state.size() ? arenas.state[i].data<float>() : nullptr; };
  Copy* copy = nullptr;
  if constexpr (!std::is_same_v<Copy, float>) copy = arenas.copy.data<Copy>();
  return {arenas.values.data<float>(), arenas.grads.data<float>(), state(0), state(1), copy};
}

constexpr size_t kPieceShared = kThreads / kWarp * sizeof(double), kSumShared = kSumThreads / kWarp * sizeof(double);

void launch_moments(const Launch& l, const UpdateArenas& arenas, const Tensor& norms) {
  launch(l.context, moments_kernel, {l.pieces, kThreads, kPieceShared}, l.verdict(), l.piece(),
         pointers_to<float>(arenas), l.sums());
  launch(l.context, direction_norms_kernel, {1, kSumThreads}, l.verdict(), l.sums(), l.run(), l.plan.runs().size(),
         norms.data<float>());
}

}  // namespace

void update(Context& context, const UpdateOptions& options, const UpdatePlan& plan, const UpdateArenas& arenas,
            const Tensor& norms) {
  const Launch l(context, plan);
  if (l.pieces > 0)
    launch(context, measure_kernel, {l.pieces, kThreads, kPieceShared}, options, l.piece(), arenas.values.data<float>(),
           arenas.grads.data<float>(), l.sums());
  launch(context, verdict_kernel, {1, kSumThreads, kSumShared}, options, context.scalars(), l.piece(), l.sums(),
         l.pieces, l.run(), plan.runs().size(), norms.data<float>(), l.verdict());
  if (l.pieces == 0) return;
  if (options.rule == UpdateRule::lamb) launch_moments(l, arenas, norms);
  dispatch_rule(options.rule, [&](auto constant) {
    constexpr UpdateRule rule = decltype(constant)::value;
    dispatch_floating(arenas.copy ? arenas.copy.dtype() : DType::f32, "update", [&](auto copy) {
      using Copy = decltype(copy);
      launch(context, update_kernel<rule, Copy>, {l.pieces, kThreads}, options, l.verdict(), norms.data<float>(),
             l.piece(), pointers_to<Copy>(arenas));
    });
  });
  if (arenas.average)
    launch(context, average_kernel, {l.pieces, kThreads}, l.verdict(), l.piece(), arenas.values.data<float>(),
           arenas.average.data<float>());
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
