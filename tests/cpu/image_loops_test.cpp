// The loops of batch norm and max pooling against sums in double precision, by every instruction set: for channels that
// fill registers and those that do not, and for some channels of longer rows.
#include <cmath>
#include <functional>
#include <vector>

#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 70;

template <class T>
std::vector<T> elements(int64_t count, uint64_t stream, float scale = 1) {
  std::vector<T> values;
  for (const float value : drawn(count, stream)) values.push_back(cpu::to_element<T>(scale * value));
  return values;
}

// What one element may be off by: a rounding to T, and those of a few sums in float.
template <class T>
double tolerance(double value) {
  return (sizeof(T) == sizeof(Bf16) ? 0x1p-8 : 0x1p-19) * std::fabs(value) + 2e-5;
}

// Operands of batch norm's loops: channels [0, c) of rows that are `stride` apart.
template <class T>
struct Rows {
  int64_t c, stride;
  std::vector<T> x = elements<T>(kRows * stride, 1, 3), other = elements<T>(kRows * stride, 2, 3),
                 y = elements<T>(kRows * stride, 3, 9);
  std::vector<float> mean = drawn(c, 4), scale = drawn(c, 5), beta = drawn(c, 6), slope = drawn(c, 7);

  double normalized(int64_t row, int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return (double{x[static_cast<size_t>(row * stride + i)]} - mean[at]) * scale[at] + beta[at];
  }
  // expected(at, row, channel) for each element that the loops write; the others stay NAN.
  void check(const std::vector<T>& found, const std::function<double(size_t, int64_t, int64_t)>& expected) const {
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 0; i < stride; ++i) {
        const auto at = static_cast<size_t>(row * stride + i);
        if (i >= c) {
          ASSERT_TRUE(std::isnan(float{found[at]})) << row << " " << i;
          continue;
        }
        const double value = expected(at, row, i);
        ASSERT_NEAR(found[at], value, tolerance<T>(value)) << row << " " << i;
      }
  }
  std::vector<T> nothing() const { return std::vector<T>(x.size(), cpu::to_element<T>(NAN)); }
};

// Where the first multiple of 64 bytes lies in `values`, which has 64 bytes to spare.
template <class T>
T* aligned(std::vector<T>& values) {
  const auto address = reinterpret_cast<uintptr_t>(values.data());
  return values.data() + (64 - address % 64) % 64 / sizeof(T);
}

// What write(to) writes past the caches is what was written into them.
template <class T>
void check_past_caches(const Rows<T>& rows, const std::vector<T>& expected, const std::function<void(T*)>& write) {
  if (rows.stride * sizeof(T) % 64 != 0 || rows.stride != rows.c) return;
  std::vector<T> memory(rows.x.size() + 64 / sizeof(T));
  T* const to = aligned(memory);
  write(to);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(to[i], expected[i]) << i;
}

template <class T>
void check_apply(const cpu::BatchNormLoops<T>& loops, const Rows<T>& rows) {
  for (const Activation act : {Activation::none, Activation::relu, Activation::relu6})
    for (const bool residual : {false, true}) {
      std::vector<T> y = rows.nothing();
      cpu::NormalizedRows<T> o{rows.x.data(),
                               residual ? rows.other.data() : nullptr,
                               y.data(),
                               rows.mean.data(),
                               rows.scale.data(),
                               rows.beta.data(),
                               kRows,
                               rows.c,
                               rows.stride,
                               act};
      loops.apply(o);
      rows.check(y, [&](size_t at, int64_t row, int64_t i) {
        const double value = rows.normalized(row, i) + (residual ? double{rows.other[at]} : 0.0);
        if (act == Activation::none) return value;
        return std::min(std::max(value, 0.0), act == Activation::relu6 ? 6.0 : INFINITY);
      });
      o.non_temporal = true;
      check_past_caches<T>(rows, y, [&](T* to) { o.y = to, loops.apply(o); });
    }
}

template <class T>
void check_gradients(const cpu::BatchNormLoops<T>& loops, const Rows<T>& rows) {
  using cpu::ReluGate;
  for (const ReluGate gate : {ReluGate::none, ReluGate::y, ReluGate::x, ReluGate::y6, ReluGate::x6}) {
    const auto gated = [&](size_t at, int64_t row, int64_t i) -> double {
      const bool by_y = gate == ReluGate::y || gate == ReluGate::y6;
      const double y = by_y ? double{rows.y[at]} : rows.normalized(row, i);
      const bool six = gate == ReluGate::y6 || gate == ReluGate::x6;
      return gate == ReluGate::none || (y > 0 && !(six && y >= 6)) ? double{rows.other[at]} : 0.0;
    };
    const cpu::GradientRows<T> in{rows.other.data(), rows.x.data(), rows.y.data(), rows.mean.data(), rows.scale.data(),
                                  rows.beta.data(),  kRows,         rows.c,        rows.stride,      gate};
    std::vector<float> sum(static_cast<size_t>(rows.c), NAN), product = sum;
    std::vector<T> kept = rows.nothing();
    loops.sums(in, sum.data(), product.data(), kept.data());
    rows.check(kept, gated);
    for (int64_t i = 0; i < rows.c; ++i) {
      double s = 0, p = 0;
      for (int64_t row = 0; row < kRows; ++row) {
        const auto at = static_cast<size_t>(row * rows.stride + i);
        s += gated(at, row, i);
        p += gated(at, row, i) * (double{rows.x[at]} - rows.mean[static_cast<size_t>(i)]);
      }
      ASSERT_NEAR(sum[static_cast<size_t>(i)], s, 1e-4) << i;
      ASSERT_NEAR(product[static_cast<size_t>(i)], p, 5e-4) << i;
    }
    for (const bool constant : {false, true})
      for (const bool add : {false, true}) {
        std::vector<T> dx = rows.nothing();
        for (size_t at = 0; at < dx.size(); ++at)
          if (add && static_cast<int64_t>(at) % rows.stride < rows.c) dx[at] = rows.y[at];
        const float* const offset = constant ? nullptr : rows.beta.data();
        loops.dx(in, offset, rows.slope.data(), add ? cpu::StoreMode::add : cpu::StoreMode::store, dx.data());
        rows.check(dx, [&](size_t at, int64_t row, int64_t i) {
          const auto channel = static_cast<size_t>(i);
          const double value = rows.scale[channel] * gated(at, row, i) + (add ? double{rows.y[at]} : 0.0);
          if (constant) return value;
          return value - rows.beta[channel] - (double{rows.x[at]} - rows.mean[channel]) * rows.slope[channel];
        });
        if (add) continue;
        check_past_caches<T>(rows, dx,
                             [&](T* to) { loops.dx(in, offset, rows.slope.data(), cpu::StoreMode::non_temporal, to); });
      }
  }
}

template <class T>
void check_moments(const cpu::BatchNormLoops<T>& loops, const Rows<T>& rows) {
  std::vector<float> sum(static_cast<size_t>(rows.c), NAN), square = sum;
  loops.moments(rows.x.data(), kRows, rows.c, rows.stride, rows.mean.data(), sum.data(), square.data());
  for (int64_t i = 0; i < rows.c; ++i) {
    const auto channel = static_cast<size_t>(i);
    double s = 0, q = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      const double d = double{rows.x[static_cast<size_t>(row * rows.stride + i)]} - rows.mean[channel];
      s += d, q += d * d;
    }
    ASSERT_NEAR(sum[channel], s, 1e-4) << i;
    ASSERT_NEAR(square[channel], q, 1e-3) << i;
  }
}

// A window of five pixels and the gradient of a pixel that four windows cover.
template <class T>
void check_max_pool(const cpu::MaxPoolLoops<T>& loops, int64_t c) {
  const std::vector<T> image = elements<T>(5 * c, 8);
  const uint8_t cells[] = {0, 2, 3, 200, 254};
  const T* pixels[5];
  for (int64_t i = 0; i < 5; ++i) pixels[i] = image.data() + i * c;
  std::vector<T> best(static_cast<size_t>(c)), alone = best, dx = elements<T>(c, 9);
  std::vector<uint8_t> winner(static_cast<size_t>(c));
  loops.window({pixels, cells, 5, c, best.data(), winner.data()});
  loops.window({pixels, cells, 5, c, alone.data(), nullptr});
  const std::vector<T> before = dx;
  const uint8_t* const winners[] = {winner.data(), winner.data(), winner.data(), winner.data()};
  loops.gradient({pixels, winners, cells, 4, c, dx.data(), true});
  for (size_t i = 0; i < best.size(); ++i) {
    size_t largest = 0;
    double sum = before[i];
    for (size_t pixel = 1; pixel < 5; ++pixel)
      if (pixels[pixel][i] > pixels[largest][i]) largest = pixel;
    for (size_t pixel = 0; pixel < 4; ++pixel) sum += pixel == largest ? double{pixels[pixel][i]} : 0.0;
    ASSERT_EQ(best[i], pixels[largest][i]) << i;
    ASSERT_EQ(alone[i], best[i]) << i;
    ASSERT_EQ(winner[i], cells[largest]) << i;
    ASSERT_NEAR(dx[i], sum, tolerance<T>(sum)) << i;
  }
}

template <class T>
void check_loops(CpuIsa isa, int64_t c, int64_t stride) {
  SCOPED_TRACE(concat(name_of(isa), ", ", c, " channels of ", stride, ", ", sizeof(T), " bytes"));
  const cpu::Kernels& kernels = cpu::kernels_of(isa);
  const Rows<T> rows{c, stride};
  check_moments(kernels.batch_norm.of<T>(), rows);
  check_apply(kernels.batch_norm.of<T>(), rows);
  check_gradients(kernels.batch_norm.of<T>(), rows);
  check_max_pool(kernels.max_pool.of<T>(), c);
}

TEST(ImageLoops, AgreeWithSumsInDouble) {
  for (const CpuIsa isa : instruction_sets())
    for (const auto& [c, stride] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {7, 20}, {37, 37}, {64, 64}, {96, 96}, {300, 331}}) {
      check_loops<float>(isa, c, stride);
      check_loops<Bf16>(isa, c, stride);
    }
}

}  // namespace
}  // namespace dtrain
