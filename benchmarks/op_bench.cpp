// Memory-bound ops at shapes of ResNet-50 and VGG: bandwidth of their compulsory traffic on CPU and GPU, with a plain
// copy as the roof.
//   op_bench --device gpu --batch 256 --benchmark_filter=max_pool
#include "benchmarks/devices.h"
#include "benchmarks/program.h"
#include "dtrain/ops/loss.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/pool.h"

namespace dtrain {
namespace {

// Timed function and its compulsory traffic (each byte read or written once).
struct Work {
  std::function<void()> run;
  size_t bytes;
};
using Op = std::function<Var(Tape&, const Var&)>;

Work forward(Context& context, const Tensor& x, Op op, size_t bytes) {
  return {[&context, x, op = std::move(op)] {
            Tape tape(context, Mode::eval);
            op(tape, tape.constant(x));
          },
          bytes};
}

// Forward and backward with a given gradient of the output.
Work step(Context& context, const Tensor& x, Op op, size_t bytes) {
  Tape once(context, Mode::eval);
  const Tensor y = op(once, once.constant(x)).value;
  const Tensor dy = context.zeros(y.shape(), y.dtype()), loss = context.zeros({1});
  return {[&context, x, dy, loss, op = std::move(op)] {
            Tape tape(context);
            const Var output = op(tape, tape.variable(x));
            tape.backward(tape.record(
                "gradient", loss, {&output},
                [output = output.without_value(), dy](Tape& t, const Tensor&) { t.pass_grad(output, dy); }));
          },
          bytes};
}

struct Case {
  const char* name;
  Shape x;  // per sample
  std::function<Work(Context&, const Tensor& x)> make;
};

Work max_pool_step(Context& context, const Tensor& x, const PoolOptions& options) {
  const auto pooled = static_cast<size_t>(pool_shape(x.shape(), options).count());
  // Forward and backward: x and dx, y and dy, and the argmax indices.
  const size_t bytes = 2 * (x.bytes() + pooled * size_of(x.dtype()) + pooled);
  return step(
      context, x, [options](Tape& t, const Var& v) { return max_pool(t, v, options); }, bytes);
}

Work cross_entropy_step(Context& context, const Tensor& x) {
  const Tensor labels = context.zeros({x.dim(0)}, DType::i32);
  const size_t probabilities = static_cast<size_t>(x.count()) * size_of(DType::f32);
  return step(
      context, x, [labels](Tape& t, const Var& v) { return softmax_cross_entropy(t, v, labels).loss; },
      2 * (x.bytes() + probabilities));
}

// u8 RGB -> normalised pixels padded to 16 bytes.
Work stem(Context& context, const Tensor& x) {
  const Tensor pixels = context.zeros({x.dim(0), x.dim(1), x.dim(2), 3}, DType::u8);
  const PixelNormalization options{.dtype = x.dtype(), .channels = static_cast<int>(16 / size_of(x.dtype()))};
  const size_t written = static_cast<size_t>(pixels.count()) / 3 * 16;
  return {[&context, pixels, options] { normalize_pixels(context, pixels, options); }, pixels.bytes() + written};
}

Work plain_copy(Context& context, const Tensor& x) {
  const Tensor y = context.empty(x.shape(), x.dtype());
  return {[&context, x, y] { context.copy(x, y); }, 2 * x.bytes()};
}

Work add_to_f32(Context& context, const Tensor& x) {
  const Tensor y = context.zeros(x.shape());
  return {[&context, x, y] { accumulate(context, x, y); }, x.bytes() + 2 * y.bytes()};
}

const std::vector<Case>& cases() {
  static const PoolOptions two{.kernel = 2, .stride = 2, .padding = 0};
  static const std::vector<Case> table{
      {"copy", {112, 112, 64}, plain_copy},
      {"normalize_pixels", {224, 224, 3}, stem},
      {"relu", {56, 56, 256}, [](Context& c, const Tensor& x) { return forward(c, x, relu, 2 * x.bytes()); }},
      {"relu_step", {56, 56, 256}, [](Context& c, const Tensor& x) { return step(c, x, relu, 5 * x.bytes()); }},
      {"add_relu",
       {56, 56, 256},
       [](Context& c, const Tensor& x) {
         const Tensor other = c.zeros(x.shape(), x.dtype());
         return forward(
             c, x, [other](Tape& t, const Var& v) { return add_relu(t, v, t.constant(other)); }, 3 * x.bytes());
       }},
      {"dropout_step",
       {4096},
       [](Context& c, const Tensor& x) {
         return step(
             c, x, [](Tape& t, const Var& v) { return dropout(t, v, 0.5f); }, 4 * x.bytes());
       }},
      {"accumulate", {100000}, add_to_f32},
      {"max_pool_3x3_step",
       {112, 112, 64},
       [](Context& c, const Tensor& x) { return max_pool_step(c, x, kResNetPool); }},
      {"max_pool_2x2_step", {112, 112, 128}, [](Context& c, const Tensor& x) { return max_pool_step(c, x, two); }},
      {"global_average_pool_step",
       {7, 7, 2048},
       [](Context& c, const Tensor& x) { return step(c, x, global_average_pool, 2 * x.bytes()); }},
      {"softmax_cross_entropy_step", {1000}, cross_entropy_step},
  };
  return table;
}

void measure(benchmark::State& state, Context& context, DType dtype, int64_t batch, const Case& test) {
  Shape shape{batch};
  for (int i = 0; i < test.x.rank(); ++i) shape.append(test.x[i]);
  const Work work = test.make(context, context.zeros(shape, dtype));
  measure_bandwidth(state, context, work.bytes, work.run);
}

void register_all(Context& context, int64_t batch) {
  for (const DType dtype : types_of(context))
    for (const Case& test : cases())
      add_benchmark(
          concat(context.device(), "/", dtype, "/", test.name),
          [&context, dtype, batch, &test](benchmark::State& state) { measure(state, context, dtype, batch, test); });
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  BatchFlag batch;
  cli::FlagSet flags("op_bench", "[flags]", "Bandwidth of memory-bound ops and of a plain copy.");
  batch.declare(flags);
  return run_op_program(flags, argc, argv, [&](Context& context) { register_all(context, batch.on(context)); });
}
