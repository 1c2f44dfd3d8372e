// The schedules of batch norm on a GPU: the same bits from each, in each compute type, at awkward sizes, and what the
// CPU gives up to rounding.
#include "dtrain/ops/batch_norm.h"
#include "libdtrain/ops/batch_norm_schedule.h"
#include "libdtrain/ops/batch_norm_tiling.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct ScheduleCase {
  Shape x;
  DType dtype = DType::f32;
  Activation activation = Activation::relu;
  bool residual = false, frozen = false, constant_parameters = false;
};

std::ostream& operator<<(std::ostream& out, const ScheduleCase& test) {
  return out << test.x << " of " << test.dtype << (test.activation == Activation::relu ? ", relu" : "")
             << (test.residual ? ", residual" : "") << (test.frozen ? ", frozen" : "")
             << (test.constant_parameters ? ", constant parameters" : "");
}

// y, the running statistics and the gradients of x, gamma, beta and the residual: those that there are.
using Outcome = std::vector<Array>;

// Gives y the gradient dy, as a copy that the op may overwrite.
Var with_gradient(Tape& tape, const Var& y, const Tensor& dy) {
  return tape.record("gradient", tape.context().zeros({1}), {&y},
                     [handle = y.without_value(), dy](Tape& t, const Tensor&) {
                       const Tensor copy = t.context().empty(dy.shape(), dy.dtype());
                       t.context().copy(dy, copy);
                       t.pass_grad(handle, copy);
                     });
}

// `dtype` is that of the device's tensors; the inputs are exact in test.dtype.
Outcome outcome_of(Context& context, const ScheduleCase& test, DType dtype) {
  poison(context);
  const Shape channels{test.x[3]};
  auto images = [&](uint64_t seed, float low, float high) {
    return to_device(context, rounded(random_array(test.x, seed, low, high), test.dtype), dtype);
  };
  Tape tape(context);
  const Var x = tape.variable(images(11, -1, 3)), residual = tape.variable(images(14, -1, 1));
  auto parameter = [&](uint64_t seed, float low) {
    const Tensor value = to_device(context, random_array(channels, seed, low, 2));
    return test.constant_parameters ? tape.constant(value) : tape.variable(value);
  };
  const Var gamma = parameter(12, 0.5f), beta = parameter(13, -1);
  const BatchNormState state{to_device(context, random_array(channels, 16)),
                             to_device(context, random_array(channels, 17, 0.5f, 2))};
  const Var y = batch_norm(tape, x, gamma, beta, state, {.frozen = test.frozen}, test.activation,
                           test.residual ? &residual : nullptr);
  Outcome outcome{to_host(context, y.value), to_host(context, state.running_mean), to_host(context, state.running_var)};
  tape.backward(with_gradient(tape, y, images(18, -1, 1)));
  for (const Var& input : {x, gamma, beta, residual})
    if (input.needs_grad() && tape.grad(input)) outcome.push_back(to_host(context, tape.grad(input)));
  return outcome;
}

// With all of shared memory, and with so little of it that most is read again and slices come in turn.
const std::vector<BatchNormSchedule> kSchedules{
    {.kind = BatchNormSchedule::Kind::two_pass},
    {.kind = BatchNormSchedule::Kind::resident},
    {.kind = BatchNormSchedule::Kind::two_pass, .shared_bytes = 48 << 10},
    {.kind = BatchNormSchedule::Kind::resident, .shared_bytes = 48 << 10},
    {.kind = BatchNormSchedule::Kind::resident, .spare_multiprocessors = 2, .shared_bytes = 48 << 10},
};

void check_schedules(const ScheduleCase& test) {
  SCOPED_TRACE(concat(test));
  const Outcome expected = outcome_of(*make_cpu_context(), test, DType::f32);
  // One row is its own mean, so that y and its gradient do not depend on it. What is left is the rounding of a product
  // of gamma, at most 2, the inverse deviation, 1 / sqrt(1e-5), and dy, at most 1: another one on each device.
  const bool one_row = !test.frozen && test.x.count() == test.x[3];
  constexpr size_t kDx = 3;
  constexpr double kRoundingOfOneRow = 2 * 317 * 0x1p-23;
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    std::vector<Outcome> outcomes;
    for (const BatchNormSchedule& schedule : kSchedules) {
      set_batch_norm_schedule(*context, schedule);
      outcomes.push_back(outcome_of(*context, test, test.dtype));
      const Outcome& outcome = outcomes.back();
      ASSERT_EQ(outcome.size(), expected.size());
      for (size_t i = 0; i < outcome.size(); ++i)
        if (i == kDx && one_row)
          for (const double value : outcome[i].values) EXPECT_NEAR(value, 0, kRoundingOfOneRow);
        else
          expect_close(outcome[i], expected[i],
                       i == 1 || i == 2 ? bounds_of(DType::f32).value : bounds_of(test.dtype).gradient,
                       concat("tensor ", i));
    }
    for (const size_t pair : {0, 2})  // where the blocks share the rows in the same way
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(outcomes[pair][i].values, outcomes[pair + 1][i].values) << "tensor " << i;
  }
}

TEST(BatchNormSchedules, OddSizes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t c : {1, 7, 8, 65}) check_schedules({{1, 33, 1, c}, dtype, Activation::relu, c % 2 == 0});
  for (const int64_t rows : {1, 2})
    for (const int64_t c : {7, 64}) check_schedules({{1, rows, 1, c}, DType::bf16});
}

TEST(BatchNormSchedules, ManyRows) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) check_schedules({{2, 25, 20, 9}, dtype});
  check_schedules({{2, 25, 20, 8}, DType::bf16, Activation::relu, true});
  check_schedules({{2, 25, 20, 65}, DType::f16, Activation::none, true});
}

// More slices than shared memory holds at a time, the last one narrower.
TEST(BatchNormSchedules, SlicesInTurn) {
  for (const bool residual : {false, true})
    check_schedules({{1, 30, 30, 168}, DType::bf16, Activation::relu, residual});
  check_schedules({{1, 30, 20, 72}, DType::f32, Activation::relu, true});
}

TEST(BatchNormSchedules, Frozen) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool residual : {false, true})
      for (const bool constant_parameters : {false, true})
        for (const int64_t c : {9, 72})
          if (dtype == DType::bf16 || residual == constant_parameters)
            check_schedules({{1, 9, 9, c}, dtype, Activation::relu, residual, true, constant_parameters});
}

// Large images are measured once, which must leave no trace; so must a second call, which goes by what was measured.
TEST(BatchNormSchedules, MeasuringLeavesNoTrace) {
  const ScheduleCase test{{1, 128, 128, 64}, DType::f32, Activation::relu, true};
  for (const auto& device : devices()) {
    if (device->is_cpu()) continue;
    const auto context = make_gpu_context({.device = device->device().index});
    set_batch_norm_schedule(*context, {.kind = BatchNormSchedule::Kind::two_pass});
    const Outcome expected = outcome_of(*context, test, test.dtype);
    set_batch_norm_schedule(*context, {});
    for (int call = 0; call < 2; ++call) {
      const Outcome outcome = outcome_of(*context, test, test.dtype);
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(outcome[i].values, expected[i].values) << "tensor " << i;
    }
  }
}

// The images of ResNet-50 at a batch of 256 on an H200, and others: a tiling fits the device and leaves nothing out.
TEST(BatchNormSchedules, TilingsFitTheDevice) {
  for (const DeviceLimits device :
       {DeviceLimits{132, 227 << 10}, {4, 227 << 10}, {40, 64 << 10}, {132, 16 << 10}, {1, 0}})
    for (const int64_t rows : {1, 64, 65, 12544, 50176, 200704, 802816, 3211264})
      for (const int64_t c : {1, 3, 8, 64, 65, 128, 256, 512, 2048, 8192, 100003})
        for (const int64_t bytes : {2, 4})
          for (const int streams : {1, 2}) {
            const BatchNormTiling t = batch_norm_tiling(rows, c, bytes, streams, device);
            SCOPED_TRACE(concat(rows, " rows of ", c, " channels of ", bytes, " bytes, ", streams, " streams"));
            EXPECT_GE(int64_t{t.slices} * t.slice_channels(), c);
            EXPECT_GE(t.rounds() * t.parallel, t.slices);
            EXPECT_LE(t.row_blocks * t.parallel, device.multiprocessors);
            EXPECT_LE((t.row_blocks - 1) * BatchNormTiling::kSweepRows, rows - 1) << "a block without rows";
            const int64_t tiles = int64_t{t.tiles} * t.kept * streams * t.sweep_bytes(bytes);
            EXPECT_LE(tiles, std::max<int64_t>(device.shared_bytes - t.sums_bytes(), 0));
            EXPECT_EQ(t.tiles, t.rounds() > 1 ? 2 : 1);
          }
}

}  // namespace
}  // namespace dtrain
