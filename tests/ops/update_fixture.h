// Updates over several steps, compared with the reference.
#pragma once

#include "tests/ops/update_reference.h"

namespace dtrain::update_tests {

struct RuleCase {
  const char* name;
  UpdateOptions options;
};

// Arenas with padding after the segments, as in a ParameterStore.
struct Arenas {
  Arenas(Context& c, const UpdateOptions& o, std::vector<UpdateSegment> segments, const Array& initial)
      : context(c), options(o), plan(c, std::move(segments)), values(to_device(c, initial)), norms(c.zeros({7})) {
    for (int i = 0; i < state_arenas(o.rule); ++i) state.push_back(c.zeros(initial.shape));
  }
  void step(const Array& grads) {
    update(context, options, plan, {values, to_device(context, grads), state, copy, average}, norms);
  }
  double norm(int64_t i) const { return to_host(context, norms)[i]; }

  Context& context;
  UpdateOptions options;
  UpdatePlan plan;
  Tensor values, norms, copy, average;
  std::vector<Tensor> state;
};

// Zero in padding.
inline Array padded_random(int64_t count, const std::vector<UpdateSegment>& segments, uint64_t seed) {
  const Array random = random_array({count}, seed);
  Array result({count});
  for (const UpdateSegment& segment : segments)
    for (int64_t i = segment.begin; i < segment.end; ++i) result[i] = random[i];
  return result;
}

// Large enough that weight decay cannot cancel them: Adam's first step is the sign of the sum.
inline Array gradients(int64_t count, const std::vector<UpdateSegment>& segments, uint64_t seed) {
  Array grads = padded_random(count, segments, seed);
  for (double& g : grads.values) g = g == 0 ? 0 : static_cast<float>(std::copysign(0.4, g) + 0.6 * g);
  return grads;
}

inline void compare_over_steps(Context& context, const RuleCase& test, const std::vector<UpdateSegment>& segments,
                               int64_t count) {
  SCOPED_TRACE(test.name);
  const Array initial = padded_random(count, segments, 1);
  Arenas arenas(context, test.options, segments, initial);
  Reference reference(test.options, initial);
  for (int t = 1; t <= 4; ++t) {
    const float lr = 0.1f / static_cast<float>(t), scale = 0.5f;
    const Array grads = gradients(count, segments, 10 + static_cast<uint64_t>(t));
    context.set_scalars({.learning_rate = lr, .gradient_scale = scale, .step = static_cast<uint64_t>(t - 1)});
    arenas.step(grads);
    reference.step(segments, grads, lr, scale, t);
  }
  expect_close(to_host(context, arenas.values), reference.v, 2e-6, "values");
  if (arenas.state.size() > 0) expect_close(to_host(context, arenas.state[0]), reference.m, 2e-6, "m");
  if (arenas.state.size() > 1) expect_close(to_host(context, arenas.state[1]), reference.s, 2e-6, "s");
  EXPECT_EQ(context.get_scalars().finite, 1);
}

}  // namespace dtrain::update_tests
