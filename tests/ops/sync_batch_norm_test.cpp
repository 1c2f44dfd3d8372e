// Synchronised batch norm: several ranks compute the results of one rank with all their images.
#include <cmath>

#include "dtrain/ops/bn_relu_max_pool.h"
#include "dtrain/ops/conv_bn_act.h"
#include "dtrain/ops/pointwise.h"
#include "libdtrain/ops/conv_bn_fusion.h"
#include "tests/distributed/thread_communicator.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

enum class Op { batch_norm, conv_bn_act, widening, bn_relu_max_pool };  // widening: conv_bn_act with a 1x1 kernel

struct SyncCase {
  std::string name;
  std::vector<int64_t> images;  // per rank
  int64_t h, w, c;
  Op op = Op::batch_norm;
  Activation activation = Activation::none;
  bool residual = false, constant_x = false;
  float far = 0;  // offset of all of x

  int ranks() const { return static_cast<int>(images.size()); }
  int64_t in_channels() const { return op == Op::widening ? c / 4 : c; }
  int64_t first_image(int rank) const {
    int64_t first = 0;
    for (int i = 0; i < rank; ++i) first += images[static_cast<size_t>(i)];
    return first;
  }
  int64_t all_images() const { return first_image(ranks()); }
};

// Results of one rank, or of all ranks together.
struct RanksOutcome {
  std::vector<Array> by_image;    // y, dx and the residual's gradient, where present
  std::vector<Array> parts;       // dgamma, dbeta and dw: partial sums
  std::vector<Array> statistics;  // running mean and variance
};

// Images [first, first + count) of x.
Array images_of(const Array& x, int64_t first, int64_t count) {
  const int64_t size = x.count() / x.dim(0);
  Array part({count, x.dim(1), x.dim(2), x.dim(3)});
  std::copy_n(x.values.begin() + first * size, count * size, part.values.begin());
  return part;
}

// Images with different statistics.
Array input_of(const SyncCase& test, DType dtype) {
  Array x = random_array({test.all_images(), test.h, test.w, test.in_channels()}, 11, -1, 2);
  for (int64_t i = 0; i < x.count(); ++i)
    x[i] = static_cast<float>(x[i] * (1 + 0.25 * static_cast<double>(i % test.c % 3)) +
                              0.5 * static_cast<double>(i / (x.count() / x.dim(0))) + test.far);
  return rounded(x, dtype);
}

Var apply(Tape& tape, const SyncCase& test, const std::vector<Var>& in, const BatchNormState& state,
          const BatchNormOptions& bn) {
  const Var* residual = test.residual ? &in[3] : nullptr;
  switch (test.op) {
    case Op::conv_bn_act:
      return conv_bn_act(tape, in[0], in[4], {.padding = 1}, in[1], in[2], state, bn, test.activation, residual);
    case Op::widening:
      return conv_bn_act(tape, in[0], in[4], {}, in[1], in[2], state, bn, test.activation, residual);
    case Op::bn_relu_max_pool:
      return bn_relu_max_pool(tape, in[0], in[1], in[2], state, bn);
    default:
      return batch_norm(tape, in[0], in[1], in[2], state, bn, test.activation, residual);
  }
}

// For images [first, first + count) of the test.
RanksOutcome outcome_of(Context& context, const SyncCase& test, DType dtype, int64_t first, int64_t count,
                        const BatchNormOptions& bn) {
  poison(context);
  const Shape channels{test.c}, all{test.all_images(), test.h, test.w, test.c};
  auto images = [&](const Array& x) { return to_device(context, images_of(x, first, count), dtype); };
  auto random_images = [&](const Shape& shape, uint64_t seed) {
    return images(rounded(random_array(shape, seed), dtype));
  };
  Tape tape(context);
  const Tensor x = images(input_of(test, dtype));
  const int64_t kernel = test.op == Op::widening ? 1 : 3;
  const Array w = rounded(random_array({test.c, kernel, kernel, test.in_channels()}, 15), dtype);
  const std::vector<Var> in{test.constant_x ? tape.constant(x) : tape.variable(x),
                            tape.variable(to_device(context, random_array(channels, 12, 0.5f, 2))),
                            tape.variable(to_device(context, random_array(channels, 13))),
                            tape.variable(random_images(all, 14)),
                            tape.variable(to_device(context, w, dtype), DType::f32)};
  const BatchNormState state{to_device(context, random_array(channels, 16)),
                             to_device(context, random_array(channels, 17, 0.5f, 2))};
  const Var y = apply(tape, test, in, state, bn);
  const Tensor dy = random_images({all[0], y.shape()[1], y.shape()[2], test.c}, 18);
  RanksOutcome outcome{
      {to_host(context, y.value)}, {}, {to_host(context, state.running_mean), to_host(context, state.running_var)}};
  tape.backward(tape.record("gradient", context.zeros({1}), {&y},
                            [y = y.without_value(), dy](Tape& t, const Tensor&) { t.pass_grad(y, dy); }));
  for (const size_t i : {0, 3})
    if (in[i].needs_grad() && tape.grad(in[i])) outcome.by_image.push_back(to_host(context, tape.grad(in[i])));
  for (const size_t i : {1, 2, 4})
    if (tape.grad(in[i])) outcome.parts.push_back(to_host(context, tape.grad(in[i])));
  return outcome;
}

// Factory of contexts for ranks on the device of `context`.
std::function<std::unique_ptr<Context>()> like(const Context& context) {
  if (context.is_cpu()) return [] { return make_cpu_context({.threads = 2}); };
  return [device = context.device().index] {
    return make_gpu_context({.device = device, .memory_cap = 256 << 20, .deterministic = true, .autotune = false});
  };
}

RanksOutcome outcome_of_ranks(const Context& device, const SyncCase& test, DType dtype) {
  std::vector<RanksOutcome> each(test.images.size());
  on_ranks(test.ranks(), like(device), [&](Context& context, ThreadCommunicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    each[rank] = outcome_of(context, test, dtype, test.first_image(communicator.rank()), test.images[rank],
                            {.communicator = &communicator});
    EXPECT_EQ(communicator.calls(), test.ranks() == 1 ? 0 : test.constant_x && test.op == Op::batch_norm ? 2 : 3);
  });
  RanksOutcome all = each[0];
  for (size_t rank = 1; rank < each.size(); ++rank) {
    const RanksOutcome& next = each[rank];
    for (size_t i = 0; i < all.statistics.size(); ++i)
      EXPECT_EQ(next.statistics[i].values, all.statistics[i].values) << "running statistics of rank " << rank;
    for (size_t i = 0; i < all.parts.size(); ++i)
      for (int64_t at = 0; at < all.parts[i].count(); ++at) all.parts[i][at] += next.parts[i][at];
    for (size_t i = 0; i < all.by_image.size(); ++i) {
      Array& to = all.by_image[i];
      const Array& more = next.by_image[i];
      to.shape = {to.dim(0) + more.dim(0), to.dim(1), to.dim(2), to.dim(3)};
      to.values.insert(to.values.end(), more.values.begin(), more.values.end());
    }
  }
  return all;
}

// A few ulp of f32; one ulp of 16 bits, where a value lies between two numbers.
double bound_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return std::ldexp(1, -8);
    case DType::f16:
      return std::ldexp(1, -11);
    default:
      return 1e-6;
  }
}

// Bitwise with one rank.
void expect_same(const std::vector<Array>& actual, const std::vector<Array>& expected, int ranks, double bound,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    expect_close(actual[i], expected[i], ranks == 1 ? 0 : bound, concat(what, ", tensor ", i));
  }
}

void expect_one_rank_with_all_images(const SyncCase& test) {
  for (const auto& device : devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (device->is_cpu() && dtype == DType::f16) continue;
      // A single rank takes statistics from the convolution's epilogue before rounding to bf16, several ranks from
      // rounded results. Values near 0 may pass ReLU on one side only.
      const bool sums_unrounded = device->is_cpu() && device->isa() == CpuIsa::avx512_bf16 && test.op == Op::widening;
      if (dtype == DType::bf16 && sums_unrounded && test.ranks() > 1) continue;
      SCOPED_TRACE(concat(test.name, ", ", test.ranks(), " ranks, ", device->device(), ", ", dtype));
      RanksOutcome expected;
      on_ranks(1, like(*device), [&](Context& context, ThreadCommunicator&) {
        expected = outcome_of(context, test, dtype, 0, test.all_images(), {});
      });
      const RanksOutcome actual = outcome_of_ranks(*device, test, dtype);
      expect_same(actual.by_image, expected.by_image, test.ranks(), bound_of(dtype), "of the images");
      expect_same(actual.parts, expected.parts, test.ranks(), bound_of(dtype), "of the parameters");
      expect_same(actual.statistics, expected.statistics, test.ranks(), bound_of(DType::f32), "running");
    }
}

const std::vector<std::vector<int64_t>> kImages{{3}, {2, 2}, {1, 3, 2}};

TEST(SyncBatchNorm, IsThatOfOneRankWithAllImages) {
  for (const auto& images : kImages)
    for (const bool residual : {false, true})
      for (const Activation activation : {Activation::none, Activation::relu})
        expect_one_rank_with_all_images(
            {concat("batch_norm", residual ? ", residual" : "", activation == Activation::relu ? ", relu" : ""), images,
             5, 3, residual ? 24 : 5, Op::batch_norm, activation, residual});
}

TEST(SyncBatchNorm, IsPartOfConvBnAct) {
  for (const auto& images : kImages)
    for (const bool residual : {false, true})
      expect_one_rank_with_all_images({"conv_bn_act", images, 4, 5, 8, Op::conv_bn_act, Activation::relu, residual});
}

// Its backward is fused into the convolution.
TEST(SyncBatchNorm, IsPartOfAConvBnActThatWidens) {
  const std::vector<int64_t> images{2, 3};
  ASSERT_TRUE(cpu::defers_gradient(*make_cpu_context({.threads = 2}), {2, 9, 8, 64}, {256, 1, 1, 64}, {}, DType::f32));
  for (const bool residual : {false, true})
    expect_one_rank_with_all_images({"widening", images, 9, 8, 256, Op::widening, Activation::relu, residual});
}

TEST(SyncBatchNorm, IsPartOfBnReluMaxPool) {
  for (const auto& images : kImages)
    expect_one_rank_with_all_images({"bn_relu_max_pool", images, 7, 6, 8, Op::bn_relu_max_pool});
}

// Then dgamma and dbeta need no all-reduce.
TEST(SyncBatchNorm, TakesImagesWithoutGradient) {
  expect_one_rank_with_all_images({"constant x", {1, 2}, 4, 3, 8, Op::batch_norm, Activation::relu, false, true});
}

// One image of one pixel per rank: its own variance would be zero.
TEST(SyncBatchNorm, TakesOnePixelPerRank) {
  expect_one_rank_with_all_images({"one pixel", {1, 1, 1}, 1, 1, 9, Op::batch_norm, Activation::relu, true});
}

// Sums of squares in f32 would lose all digits of the variance.
TEST(SyncBatchNorm, KeepsItsDigitsFarFromZero) {
  SyncCase test{"far from zero", {1, 3, 2}, 16, 15, 9};
  test.far = 1000;
  const Array x = input_of(test, DType::f32);
  const int64_t rows = x.count() / test.c;
  Array mean({test.c}), var({test.c});
  for (int64_t i = 0; i < x.count(); ++i) mean[i % test.c] += x[i] / static_cast<double>(rows);
  for (int64_t i = 0; i < x.count(); ++i)
    var[i % test.c] += std::pow(x[i] - mean[i % test.c], 2) / static_cast<double>(rows - 1);
  for (const auto& device : devices())
    on_ranks(test.ranks(), like(*device), [&](Context& context, ThreadCommunicator& communicator) {
      const int rank = communicator.rank();
      const RanksOutcome outcome =
          outcome_of(context, test, DType::f32, test.first_image(rank), test.images[static_cast<size_t>(rank)],
                     {.momentum = 0, .communicator = &communicator});
      expect_close(outcome.statistics[0], mean, 2e-7, "mean");
      expect_close(outcome.statistics[1], var, 2e-6, "variance");
    });
}

TEST(SyncBatchNorm, TellsNobodyOfConstantStatistics) {
  for (const auto& device : devices())
    on_ranks(2, like(*device), [&](Context& context, ThreadCommunicator& communicator) {
      const SyncCase test{"frozen", {1, 1}, 4, 3, 8, Op::batch_norm, Activation::relu, true};
      const auto frozen = [&](Communicator* by) {
        return outcome_of(context, test, DType::f32, 0, 1, {.frozen = true, .communicator = by});
      };
      const RanksOutcome alone = frozen(nullptr), synchronised = frozen(&communicator);
      for (size_t i = 0; i < alone.by_image.size(); ++i)
        EXPECT_EQ(synchronised.by_image[i].values, alone.by_image[i].values) << "tensor " << i;
      EXPECT_EQ(communicator.calls(), 0);
    });
}

// Two ranks with equal images: sums are computed in the compute stream and so can be captured.
class EqualRanks : public Communicator {
 public:
  EqualRanks(Group& group, Context& context) : Communicator(group), context_(context) {}
  void all_reduce(std::span<const Tensor> ranges, const std::string&, bool) override {
    ++calls_;
    for (const Tensor& range : ranges) {
      const Tensor other = context_.empty(range.shape());
      context_.copy(range, other);
      accumulate(context_, other, range);
    }
  }
  void broadcast(const Tensor&, int, const std::string&) override {}
  void join() override {}
  std::string describe() const override { return "twice the same"; }
  CommunicatorTimes take_times() override { return {}; }
  int calls() const { return calls_; }

 private:
  Context& context_;
  int calls_ = 0;
};

// All means equal a single rank's.
TEST(SyncBatchNorm, IsCapturedAndLaunched) {
  const Shape shape{2, 5, 4, 16}, channels{16};
  MeetingPlace place(2);
  ThreadGroup group(place, 0, 2);
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    const Tensor x = context->zeros(shape, DType::bf16), dx = context->zeros(shape);
    const Tensor y = context->zeros(shape, DType::bf16);
    const Tensor gamma = to_device(*context, random_array(channels, 3, 0.5f, 2)), beta = context->zeros(channels);
    const BatchNormState state{context->zeros(channels), context->zeros(channels)};
    EqualRanks equal(group, *context);
    const auto step = [&](Communicator* communicator) {
      Tape tape(*context);
      const Var in = tape.variable(x);
      const Var out = batch_norm(tape, in, tape.constant(gamma), tape.constant(beta), state,
                                 {.unbiased_running_variance = false, .communicator = communicator}, Activation::relu);
      context->copy(out.value, y);
      tape.backward(tape.record("gradient", context->zeros({1}), {&out},
                                [out](Tape& t, const Tensor&) { t.pass_grad(out.without_value(), out.value); }));
      accumulate(*context, tape.grad(in), dx);
    };
    const auto results = [&] {
      std::vector<Array> all;
      for (const Tensor& tensor : {y, dx, state.running_mean, state.running_var})
        all.push_back(to_host(*context, tensor));
      for (const Tensor& tensor : {dx, state.running_mean, state.running_var}) context->fill_zero(tensor);
      return all;
    };
    const auto graph = context->capture([&] { step(&equal); });
    EXPECT_EQ(equal.calls(), 3);
    for (const uint64_t seed : {1, 2}) {
      context->copy(to_device(*context, rounded(random_array(shape, seed, -1, 3), DType::bf16), DType::bf16), x);
      step(nullptr);
      const std::vector<Array> expected = results();
      context->launch(*graph);
      const std::vector<Array> launched = results();
      for (size_t i = 0; i < expected.size(); ++i)
        expect_close(launched[i], expected[i], bound_of(i < 2 ? DType::bf16 : DType::f32), concat("tensor ", i));
    }
  }
}

}  // namespace
}  // namespace dtrain
