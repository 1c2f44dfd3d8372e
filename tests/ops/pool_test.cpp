// Pooling against loops over windows.
#include "dtrain/ops/pool.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;
using Values = std::vector<double>;
enum class Kind { max, average };

Array naive_pool(const Array& x, const PoolOptions& o, Kind kind) {
  const int64_t height = x.dim(1), width = x.dim(2);
  const int64_t p_end = (height + o.padding.top + o.padding.bottom - o.kernel.h) / o.stride.h + 1;
  const int64_t q_end = (width + o.padding.left + o.padding.right - o.kernel.w) / o.stride.w + 1;
  Array y({x.dim(0), p_end, q_end, x.dim(3)});
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t p = 0; p < p_end; ++p)
      for (int64_t q = 0; q < q_end; ++q)
        for (int64_t c = 0; c < x.dim(3); ++c) {
          double largest = -std::numeric_limits<double>::infinity(), sum = 0;
          int inside = 0;
          for (int r = 0; r < o.kernel.h; ++r)
            for (int s = 0; s < o.kernel.w; ++s) {
              const int64_t h = p * o.stride.h + r - o.padding.top, w = q * o.stride.w + s - o.padding.left;
              if (h < 0 || h >= height || w < 0 || w >= width) continue;
              largest = std::max(largest, x.at(n, h, w, c));
              sum += x.at(n, h, w, c);
              ++inside;
            }
          const int cells = o.count_padding ? o.kernel.h * o.kernel.w : inside;
          y.at(n, p, q, c) = kind == Kind::max ? largest : sum / cells;
        }
  return y;
}

struct Geometry {
  Shape x;
  PoolOptions options;
};

const std::vector<Geometry>& geometries() {
  static const std::vector<Geometry> table{
      {{2, 9, 8, 5}, kResNetPool},                               // ResNet stem
      {{1, 7, 7, 70}, kResNetPool},                              // more channels than one block
      {{1, 6, 6, 3}, {.kernel = 2, .stride = 2, .padding = 0}},  // VGG
      {{2, 5, 7, 2}, {.kernel = {3, 2}, .stride = {1, 3}, .padding = {0, 2, 1, 0}}},
      {{1, 8, 8, 4}, {.kernel = 2, .stride = 3, .padding = 0}},       // cells outside of all windows
      {{1, 4, 5, 3}, {.kernel = {4, 5}, .stride = 1, .padding = 0}},  // one window
      {{2, 7, 6, 3}, {.kernel = 3, .stride = 2, .padding = 1, .count_padding = false}},
      {{3, 40, 40, 16}, kResNetPool},                            // several threads
      {{1, 5, 6, 8}, {.kernel = 2, .stride = 2, .padding = 0}},  // a whole 16-byte access, as are the following
      {{2, 5, 4, 8}, {.kernel = 3, .stride = 2, .padding = {0, 1, 1, 2}, .count_padding = false}},
      {{1, 4, 6, 16}, {.kernel = 3, .stride = 1, .padding = 1}},
      {{1, 5, 4, 8}, {.kernel = {2, 3}, .stride = {2, 1}, .padding = {1, 0, 0, 2}}},
  };
  return table;
}

TEST(Pool, MaxPool) {
  for (const auto& [x, options] : geometries())
    check_op({.name = concat("max_pool ", x),
              .inputs = {random_array(x, 1)},
              .op = [o = options](Tape& t, const Vars& v) { return max_pool(t, v[0], o); },
              .reference = [o = options](const Arrays& a) { return naive_pool(a[0], o, Kind::max); },
              .kinks = true,
              .exact = true});
}

TEST(Pool, AveragePool) {
  for (const auto& [x, options] : geometries())
    check_op({.name = concat("average_pool ", x),
              .inputs = {random_array(x, 2)},
              .op = [o = options](Tape& t, const Vars& v) { return average_pool(t, v[0], o); },
              .reference = [o = options](const Arrays& a) { return naive_pool(a[0], o, Kind::average); },
              .exact = !sanitized()});  // Clang contracts to FMA on one device only
}

TEST(Pool, GlobalAveragePool) {
  for (const Shape x : {Shape{1, 1, 1, 1}, Shape{2, 7, 5, 9}, Shape{2, 7, 7, 24}, Shape{3, 60, 50, 4}})
    check_op({.name = concat("global_average_pool ", x),
              .inputs = {random_array(x, 3)},
              .op = [](Tape& t, const Vars& v) { return global_average_pool(t, v[0]); },
              .reference =
                  [](const Arrays& a) {
                    const PoolOptions whole{.kernel = {static_cast<int>(a[0].dim(1)), static_cast<int>(a[0].dim(2))},
                                            .stride = 1,
                                            .padding = 0};
                    return Array({a[0].dim(0), a[0].dim(3)}, naive_pool(a[0], whole, Kind::average).values);
                  },
              .exact = true});
}

// As in PyTorch, padding is 0 by default; no partial windows.
TEST(Pool, HasNoPaddingByDefault) {
  EXPECT_EQ(pool_shape({1, 4, 4, 2}, {.kernel = 2, .stride = 2}), (Shape{1, 2, 2, 2}));
  static_assert(!std::is_default_constructible_v<PoolOptions>);
}

// Gradient of max_pool(x) with a single window.
Values max_pool_gradient(Context& context, const Array& x, const PoolOptions& options) {
  Tape tape(context);
  const Var in = tape.variable(to_device(context, x));
  tape.backward(max_pool(tape, in, options));
  return to_host(context, tape.grad(in)).values;
}

TEST(Pool, ATieGivesTheGradientToTheFirstCellInRowOrder) {
  for (const auto& context : devices()) {
    const PoolOptions whole{.kernel = 2, .stride = 1, .padding = 0};
    EXPECT_EQ(max_pool_gradient(*context, Array({1, 2, 2, 1}, {3, 5, 5, 5}), whole), (Values{0, 1, 0, 0}));
    // Windows of zeros next to padding: the first cell inside the image is the argmax.
    EXPECT_EQ(max_pool_gradient(*context, Array({1, 2, 2, 1}), {.kernel = 3, .stride = 2, .padding = 1}),
              (Values{1, 0, 0, 0}));
  }
}

TEST(Pool, TheMaximumOfNegativesBesidePaddingIsNegativeAndNanWins) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& context : devices()) {
    auto pooled = [&](const Array& x) {
      Tape tape(*context);
      return to_host(*context, max_pool(tape, tape.constant(to_device(*context, x)), kResNetPool).value)[0];
    };
    EXPECT_EQ(pooled(Array({1, 2, 2, 1}, -7)), -7);
    EXPECT_EQ(pooled(Array({1, 2, 2, 1}, -infinity)), -infinity);
    EXPECT_TRUE(std::isnan(pooled(Array({1, 2, 2, 1}, {1, std::nan(""), 3, 4}))));
    EXPECT_TRUE(std::isnan(pooled(Array({1, 2, 2, 1}, {std::nan(""), 1, 3, 4}))));
  }
}

TEST(Pool, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.constant(context->zeros({1, 4, 4, 1}));
  const auto pool = [&](const PoolOptions& options) { return [&, options] { average_pool(tape, x, options); }; };
  expect_error(pool({.kernel = 7, .stride = 1, .padding = 1}), Fault::config, "padded image of 6");
  expect_error(pool({.kernel = 2, .stride = 1, .padding = 2}), Fault::config, "smaller than the kernel");
  expect_error(pool({.kernel = 2, .stride = 0, .padding = 0}), Fault::config, "stride 0");
  expect_error([&] { max_pool(tape, x, {.kernel = 16, .stride = 1, .padding = 15}); }, Fault::config, "at most 255");
  expect_error([&] { max_pool(tape, tape.constant(context->zeros({4, 4})), kResNetPool); }, Fault::config, "[4, 4]");
}

}  // namespace
}  // namespace dtrain
