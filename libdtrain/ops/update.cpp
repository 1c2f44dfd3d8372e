#include "dtrain/ops/update.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/update_kernels.h"
#include "libdtrain/ops/update_norms_math.h"

namespace dtrain {

template <>
inline constexpr bool takes_bf16<cpu::update> = true;

namespace {

// Copies an array of plain structs to device memory.
template <class T>
Tensor to_device(Context& context, const std::vector<T>& values) {
  const Tensor result = context.empty({static_cast<int64_t>(values.size() * sizeof(T))}, DType::u8);
  context.upload(values.data(), result);
  return result;
}

void check_segments(const UpdatePlan& plan, const Tensor& values) {
  for (const UpdateSegment& segment : plan.segments())
    DT_CHECK(0 <= segment.begin && segment.begin <= segment.end && segment.end <= values.count(), "update: segment [",
             segment.begin, ", ", segment.end, ") of ", values.count(), " elements");
}

void check_options(const UpdateOptions& o) {
  const bool larc = o.larc != Larc::none;
  DT_CHECK(o.average_decay >= 0 && o.average_decay <= 1, "update: a moving average of decay ", o.average_decay,
           ", expected 0 to 1");
  DT_CHECK(o.clip_value == 0 || (o.clip_norm == 0 && o.rule != UpdateRule::lars && !larc),
           "update: clipping by value does not go with clipping by norm, LARS or LARC: they need the norm before "
           "clipping");
  DT_CHECK(!larc || o.rule == UpdateRule::sgd || o.rule == UpdateRule::momentum || o.rule == UpdateRule::nesterov,
           "update: LARC goes with SGD, with momentum or without");
}

}  // namespace

UpdatePlan::UpdatePlan(Context& context, std::vector<UpdateSegment> segments) : segments_(std::move(segments)) {
  for (const UpdateSegment& segment : segments_) {
    const auto parameter = static_cast<int32_t>(segment.parameter);
    const size_t first = pieces_.size();
    for (int64_t begin = segment.begin; begin < segment.end; begin += kPiece)
      pieces_.push_back({begin, static_cast<int32_t>(std::min<int64_t>(kPiece, segment.end - begin)), parameter,
                         segment.weight_decay, segment.rate});
    if (parameter >= 0)
      runs_.push_back({static_cast<int32_t>(first), static_cast<int32_t>(pieces_.size() - first), parameter});
  }
  if (context.is_cpu()) return;
  device_pieces_ = to_device(context, pieces_);
  device_runs_ = to_device(context, runs_);
}

void update(Context& context, const UpdateOptions& options, const UpdatePlan& plan, const UpdateArenas& arenas,
            const Tensor& norms) {
  const Tensor &values = arenas.values, &grads = arenas.grads, &copy = arenas.copy;
  DT_CHECK(values.shape() == grads.shape(), "update: values ", values.shape(), " and gradients ", grads.shape());
  DT_CHECK(static_cast<int>(arenas.state.size()) == state_arenas(options.rule), "update: ", arenas.state.size(),
           " arenas of state; the rule needs ", state_arenas(options.rule));
  for (const Tensor& state : arenas.state)
    DT_CHECK(state.shape() == values.shape(), "update: values ", values.shape(), " and state ", state.shape());
  DT_CHECK(!copy || (copy.shape() == values.shape() && copy.dtype() != DType::f32), "update: values ", values.shape(),
           " and their rounded copy ", copy.shape(), " of ", copy.dtype());
  DT_CHECK(!arenas.average || arenas.average.shape() == values.shape(), "update: values ", values.shape(),
           " and their average ", arenas.average.shape());
  check_options(options);
  check_segments(plan, values);
  for (const UpdateSegment& segment : plan.segments())
    DT_CHECK(1 + 2 * (segment.parameter + 1) <= norms.count(), "update: no room for the norms of parameter ",
             segment.parameter, " in ", norms.shape());
  DT_DISPATCH(context, update)(options, plan, arenas, norms);
}

void l2_loss(Context& context, const UpdatePlan& plan, const Tensor& values, const Tensor& loss) {
  check_segments(plan, values);
  DT_DISPATCH(context, l2_loss)(plan, values, loss);
}

namespace cpu {
namespace {

// body(i, piece) for all pieces, in parallel.
template <class Body>
void for_each_piece(const UpdatePlan& plan, const Body& body) {
  parallel_ranges(
      static_cast<int64_t>(plan.pieces().size()),
      [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) body(i, plan.pieces()[i]);
      },
      UpdatePlan::kPiece);
}

double sum_of_squares(const float* x, int64_t count) {
  return sum_in_lanes(count, [x](int64_t i) { return square(x[i]); });
}

struct Pointers {
  float* values;
  const float* grads;
  float *m, *s;
};

UpdateSums sums_of(const UpdateOptions& options, const UpdatePiece& piece, const Pointers& arenas) {
  const float *v = arenas.values + piece.begin, *g = arenas.grads + piece.begin;
  UpdateSums sums{.gradient = sum_of_squares(g, piece.count)};
  if (piece.parameter < 0) return sums;
  sums.value = sum_of_squares(v, piece.count);
  if (options.joint_norm)
    sums.product = sum_in_lanes(piece.count, [=](int64_t i) { return static_cast<double>(g[i]) * v[i]; });
  return sums;
}

// Sums of a parameter from its pieces' sums.
UpdateSums sums_of(const UpdateRun& run, const std::vector<UpdateSums>& pieces) {
  UpdateSums sums;
  for (int i = run.first_piece; i < run.first_piece + run.pieces; ++i) {
    const UpdateSums& piece = pieces[static_cast<size_t>(i)];
    sums.gradient += piece.gradient;
    sums.value += piece.value;
    sums.direction += piece.direction;
    sums.product += piece.product;
  }
  return sums;
}

// Computes `norms`.
void measure(const UpdateOptions& options, const UpdatePlan& plan, const Pointers& arenas, float scale, float* norms) {
  std::vector<UpdateSums> sums(plan.pieces().size());
  for_each_piece(plan, [&](size_t i, const UpdatePiece& piece) { sums[i] = sums_of(options, piece, arenas); });
  double all = 0;
  for (const UpdateSums& piece : sums) all += piece.gradient;
  norms[0] = norm_of(all, scale);
  const float clip = norm_clip(options, norms[0]);
  for (const UpdateRun& run : plan.runs()) {
    const UpdateSums sum = sums_of(run, sums);
    const float decay = plan.pieces()[static_cast<size_t>(run.first_piece)].weight_decay;
    norms[1 + 2 * run.parameter] = norm_of(sum.value, 1);
    norms[2 + 2 * run.parameter] = second_norm(options, sum, scale, clip, decay);
  }
}

// First pass of LAMB: updates the moments, computes the norms of the directions.
void move_moments(const UpdateFactors& step, const UpdatePlan& plan, const Pointers& arenas, float* norms) {
  std::vector<UpdateSums> sums(plan.pieces().size());
  for_each_piece(plan, [&](size_t p, const UpdatePiece& piece) {
    UpdateFactors f = step;
    f.decay = piece.weight_decay;
    const Pointers at{arenas.values + piece.begin, arenas.grads + piece.begin, arenas.m + piece.begin,
                      arenas.s + piece.begin};
    sums[p].direction = sum_in_lanes(
        piece.count, [&](int64_t i) { return square(lamb_moments(f, at.grads[i], at.values[i], at.m[i], at.s[i])); });
  });
  for (const UpdateRun& run : plan.runs()) norms[2 + 2 * run.parameter] = norm_of(sums_of(run, sums).direction, 1);
}

template <UpdateRule rule>
void apply(const UpdateFactors& factors, const Pointers& arenas, const UpdatePiece& piece) {
  const UpdateFactors f = factors;  // local copy: stores below cannot alias it
  float* const __restrict v = arenas.values;
  const float* const __restrict g = arenas.grads;
  float* const __restrict m = arenas.m;
  float* const __restrict s = arenas.s;
  for (int64_t i = piece.begin; i < piece.begin + piece.count; ++i) {
    float new_m = 0, new_s = 0;
    if constexpr (state_arenas(rule) > 0) new_m = m[i];
    if constexpr (state_arenas(rule) > 1) new_s = s[i];
    update_element<rule>(f, g[i], v[i], new_m, new_s);
    if constexpr (moves_state(rule) && state_arenas(rule) > 0) m[i] = new_m;
    if constexpr (moves_state(rule) && state_arenas(rule) > 1) s[i] = new_s;
  }
}

void copy_piece(const float* __restrict v, Bf16* __restrict copy, const UpdatePiece& piece) {
  for (int64_t i = piece.begin; i < piece.begin + piece.count; ++i) copy[i] = to_bf16(v[i]);
}

void average_piece(float share, const float* __restrict v, float* __restrict a, const UpdatePiece& piece) {
  for (int64_t i = piece.begin; i < piece.begin + piece.count; ++i) a[i] += share * (v[i] - a[i]);
}

}  // namespace

void update(Context& context, const UpdateOptions& options, const UpdatePlan& plan, const UpdateArenas& arenas,
            const Tensor& norms) {
  StepScalars& scalars = *context.scalars();
  auto state = [&](size_t i) { return i < arenas.state.size() ? arenas.state[i].data<float>() : nullptr; };
  const Pointers pointers{arenas.values.data<float>(), arenas.grads.data<float>(), state(0), state(1)};
  float* norm = norms.data<float>();

  measure(options, plan, pointers, unscale(scalars), norm);
  const UpdateFactors step = update_factors(options, scalars, norm[0]);
  if (!settle(scalars, norm[0])) return;
  if (options.rule == UpdateRule::lamb) move_moments(step, plan, pointers, norm);
  float* const average = arenas.average ? arenas.average.data<float>() : nullptr;
  Bf16* const copy = arenas.copy ? arenas.copy.data<Bf16>() : nullptr;
  dispatch_rule(options.rule, [&](auto rule) {
    for_each_piece(plan, [&](size_t, const UpdatePiece& piece) {
      apply<rule>(piece_factors(options, step, piece, norm), pointers, piece);
      if (copy) copy_piece(pointers.values, copy, piece);
      if (average) average_piece(step.averaged, pointers.values, average, piece);
    });
  });
}

void l2_loss(Context&, const UpdatePlan& plan, const Tensor& values, const Tensor& loss) {
  const float* v = values.data<float>();
  std::vector<double> losses(plan.pieces().size());
  for_each_piece(plan, [&](size_t i, const UpdatePiece& piece) {
    if (piece.weight_decay > 0)
      losses[i] = static_cast<double>(piece.weight_decay) / 2 * sum_of_squares(v + piece.begin, piece.count);
  });
  double sum = 0;
  for (double piece : losses) sum += piece;
  *loss.data<float>() = static_cast<float>(sum);
}

}  // namespace cpu
}  // namespace dtrain
