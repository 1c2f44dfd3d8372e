#include "libdtrain/ops/update.h"

#include <algorithm>
#include <cmath>

#include "libdtrain/core/dispatch.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/ops/update_math.h"

namespace dtrain {

int state_arenas(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::sgd:
      return 0;
    case UpdateRule::momentum:
    case UpdateRule::nesterov:
    case UpdateRule::lars:
      return 1;
    case UpdateRule::adamw:
    case UpdateRule::adam:
    case UpdateRule::rmsprop:
      return 2;
  }
  return 0;
}

namespace {

void check_segment(const UpdateSegment& segment, const Tensor& values) {
  DT_CHECK(0 <= segment.begin && segment.begin <= segment.end && segment.end <= values.count(), "update: segment [",
           segment.begin, ", ", segment.end, ") of ", values.count(), " elements");
}

}  // namespace

void l2_loss(Context& context, const std::vector<UpdateSegment>& segments, const Tensor& values, const Tensor& loss) {
  for (const UpdateSegment& segment : segments) check_segment(segment, values);
  DT_DISPATCH(context, l2_loss, segments, values, loss);
}

void update(Context& context, const UpdateOptions& options, const std::vector<UpdateSegment>& segments,
            const Tensor& values, const Tensor& grads, const std::vector<Tensor>& state, const Tensor& norms) {
  DT_CHECK(values.shape() == grads.shape(), "update: values ", values.shape(), " and gradients ", grads.shape());
  DT_CHECK(static_cast<int>(state.size()) == state_arenas(options.rule), "update: ", state.size(),
           " arenas of state; the rule needs ", state_arenas(options.rule));
  for (const Tensor& arena : state)
    DT_CHECK(arena.shape() == values.shape(), "update: values ", values.shape(), " and state ", arena.shape());
  DT_CHECK(options.clip_value == 0 || (options.clip_norm == 0 && options.rule != UpdateRule::lars),
           "update: clipping by value does not go with clipping by norm or LARS: both need the norm before clipping");
  for (const UpdateSegment& segment : segments) {
    check_segment(segment, values);
    DT_CHECK(1 + 2 * (segment.parameter + 1) <= norms.count(), "update: no room for the norms of parameter ",
             segment.parameter, " in ", norms.shape());
  }
  DT_DISPATCH(context, update, options, segments, values, grads, state, norms);
}

namespace cpu {
namespace {

// Long enough to hide the cost of handing it out, short enough to share a few large parameters evenly. The sums of
// squares are taken piece by piece, so that they do not depend on the thread count.
constexpr int64_t kPiece = 16384;

struct Piece {
  const UpdateSegment* segment;
  int64_t begin, end;
  double gradient_squares, value_squares;
};

std::vector<Piece> cut(const std::vector<UpdateSegment>& segments) {
  std::vector<Piece> pieces;
  for (const UpdateSegment& segment : segments)
    for (int64_t begin = segment.begin; begin < segment.end; begin += kPiece)
      pieces.push_back({&segment, begin, std::min(begin + kPiece, segment.end), 0, 0});
  return pieces;
}

// body(piece) for each, in parallel
template <class Body>
void for_each_piece(std::vector<Piece>& pieces, Body&& body) {
  parallel_ranges(
      static_cast<int64_t>(pieces.size()),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(pieces[static_cast<size_t>(i)]);
      },
      kPiece);
}

double sum_of_squares(const float* x, int64_t count) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += square(x[i + lane]);
  for (; i < count; ++i) lanes[0] += square(x[i]);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

// Fills `norms`; the norms of values only where `with_values`.
void measure(std::vector<Piece>& pieces, const float* values, const float* grads, float scale, bool with_values,
             const Tensor& norms) {
  for_each_piece(pieces, [&](Piece& piece) {
    const int64_t count = piece.end - piece.begin;
    piece.gradient_squares = sum_of_squares(grads + piece.begin, count);
    if (with_values) piece.value_squares = sum_of_squares(values + piece.begin, count);
  });
  auto scaled = [scale](double squares) { return static_cast<float>(std::abs(scale) * std::sqrt(squares)); };
  float* norm = norms.data<float>();
  double all = 0;
  for (const Piece& piece : pieces) all += piece.gradient_squares;
  norm[0] = scaled(all);
  for (size_t i = 0; with_values && i < pieces.size();) {
    const UpdateSegment* segment = pieces[i].segment;
    double value_squares = 0, gradient_squares = 0;
    for (; i < pieces.size() && pieces[i].segment == segment; ++i) {
      value_squares += pieces[i].value_squares;
      gradient_squares += pieces[i].gradient_squares;
    }
    if (segment->parameter < 0) continue;
    norm[1 + 2 * segment->parameter] = static_cast<float>(std::sqrt(value_squares));
    norm[2 + 2 * segment->parameter] = scaled(gradient_squares);
  }
}

struct Arenas {
  float* values;
  const float* grads;
  float *m, *s;
};

template <UpdateRule rule>
void apply(const UpdateFactors& factors, const Arenas& arenas, const Piece& piece) {
  constexpr bool kHasM = rule != UpdateRule::sgd;
  constexpr bool kHasS = rule == UpdateRule::adamw || rule == UpdateRule::adam || rule == UpdateRule::rmsprop;
  const UpdateFactors f = factors;  // a local that the stores below cannot alias
  float* const __restrict v = arenas.values;
  const float* const __restrict g = arenas.grads;
  float* const __restrict m = arenas.m;
  float* const __restrict s = arenas.s;
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    float new_m = kHasM ? m[i] : 0, new_s = kHasS ? s[i] : 0;
    update_element<rule>(f, g[i], v[i], new_m, new_s);
    if (kHasM) m[i] = new_m;
    if (kHasS) s[i] = new_s;
  }
}

using Apply = void (*)(const UpdateFactors&, const Arenas&, const Piece&);

Apply apply_of(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::sgd:
      return apply<UpdateRule::sgd>;
    case UpdateRule::momentum:
      return apply<UpdateRule::momentum>;
    case UpdateRule::nesterov:
      return apply<UpdateRule::nesterov>;
    case UpdateRule::adamw:
      return apply<UpdateRule::adamw>;
    case UpdateRule::adam:
      return apply<UpdateRule::adam>;
    case UpdateRule::rmsprop:
      return apply<UpdateRule::rmsprop>;
    case UpdateRule::lars:
      return apply<UpdateRule::lars>;
  }
  return nullptr;
}

}  // namespace

void l2_loss(Context&, const std::vector<UpdateSegment>& segments, const Tensor& values, const Tensor& loss) {
  std::vector<UpdateSegment> decayed = segments;
  std::erase_if(decayed, [](const UpdateSegment& segment) { return segment.weight_decay == 0; });
  std::vector<Piece> pieces = cut(decayed);
  const float* v = values.data<float>();
  for_each_piece(pieces,
                 [&](Piece& piece) { piece.value_squares = sum_of_squares(v + piece.begin, piece.end - piece.begin); });
  double sum = 0;
  for (const Piece& piece : pieces) sum += static_cast<double>(piece.segment->weight_decay) / 2 * piece.value_squares;
  *loss.data<float>() = static_cast<float>(sum);
}

void update(Context& context, const UpdateOptions& options, const std::vector<UpdateSegment>& segments,
            const Tensor& values, const Tensor& grads, const std::vector<Tensor>& state, const Tensor& norms) {
  StepScalars& scalars = *context.scalars();
  const bool lars = options.rule == UpdateRule::lars;
  auto arena = [&](size_t i) { return i < state.size() ? state[i].data<float>() : nullptr; };
  const Arenas arenas{values.data<float>(), grads.data<float>(), arena(0), arena(1)};
  const float* norm = norms.data<float>();

  std::vector<Piece> pieces = cut(segments);
  measure(pieces, arenas.values, arenas.grads, unscale(scalars), lars, norms);
  const UpdateFactors step = update_factors(options, scalars, norm[0]);
  if (!settle(scalars, norm[0])) return;

  const float clip = norm_clip(options, norm[0]);
  const Apply run = apply_of(options.rule);
  for_each_piece(pieces, [&](const Piece& piece) {
    UpdateFactors factors = step;
    factors.decay = piece.segment->weight_decay;
    if (const int64_t p = piece.segment->parameter; lars && p >= 0)
      factors.rate *= lars_ratio(options, factors.decay, norm[1 + 2 * p], clip * norm[2 + 2 * p]);
    run(factors, arenas, piece);
  });
}

}  // namespace cpu
}  // namespace dtrain
