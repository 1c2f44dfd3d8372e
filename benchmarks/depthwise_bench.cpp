// Depthwise convolutions of MobileNet v1 at 224 pixels, and some larger kernels of NASNet: bandwidth of forward, dgrad
// and wgrad over the images that a pass reads and writes, with a plain copy as the roof.
//   depthwise_bench --device cpu --batch 16 --benchmark_filter=forward
#include "benchmarks/devices.h"
#include "benchmarks/program.h"
#include "dtrain/core/dispatch.h"
#include "dtrain/core/rng.h"
#include "dtrain/ops/conv2d.h"
#include "libdtrain/ops/compute_copy.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {
namespace {

struct Layer {
  int64_t size, channels;
  int kernel, stride;
};

// Keep equal to peers/depthwise_peer.py.
constexpr Layer kLayers[] = {
    {112, 32, 3, 1}, {112, 64, 3, 2}, {56, 128, 3, 1}, {56, 128, 3, 2}, {28, 256, 3, 1}, {28, 256, 3, 2},
    {14, 512, 3, 1}, {14, 512, 3, 2}, {7, 1024, 3, 1}, {28, 44, 5, 1},  {28, 88, 5, 2},  {56, 44, 7, 2},
};
constexpr const char* kPasses[] = {"forward", "dgrad", "wgrad"};

Tensor random(Context& context, const Shape& shape, DType dtype) {
  std::vector<float> values(static_cast<size_t>(shape.count()));
  RandomStream stream(1, 0);
  for (float& value : values) value = stream.uniform(-1, 1);
  const Tensor tensor = context.empty(shape, dtype), f32 = context.empty(shape);
  context.upload(values.data(), f32);
  round_values(context, f32, tensor);
  return tensor;
}

void measure(benchmark::State& state, Context& context, DType dtype, int64_t batch, const Layer& layer, int pass) {
  const Conv2dOptions options{.stride = layer.stride,
                              .padding = Padding::same(layer.size, layer.size, layer.kernel, layer.stride),
                              .groups = static_cast<int>(layer.channels)};
  const Shape images{batch, layer.size, layer.size, layer.channels};
  const Shape filters{layer.channels, layer.kernel, layer.kernel, 1};
  const Tensor x = random(context, images, dtype), w = random(context, filters, dtype);
  const Tensor y = random(context, conv2d_shape(images, filters, options), dtype), dw = context.zeros(filters);
  measure_bandwidth(state, context, x.bytes() + y.bytes(), [&] {
    if (pass == 0) DT_DISPATCH(context, conv2d)(x, w, Tensor(), options, y);
    if (pass == 1) DT_DISPATCH(context, conv2d_dgrad)(y, w, options, x, false);
    if (pass == 2) DT_DISPATCH(context, conv2d_wgrad)(x, y, options, dw, false);
  });
}

void measure_copy(benchmark::State& state, Context& context, DType dtype, int64_t batch) {
  const Tensor x = context.zeros({batch, 112, 112, 64}, dtype), y = context.zeros(x.shape(), dtype);
  measure_bandwidth(state, context, 2 * x.bytes(), [&] { context.copy(x, y); });
}

void register_all(Context& context, int64_t batch) {
  for (const DType dtype : types_of(context)) {
    const std::string where = concat(context.device(), "/", dtype, "/");
    add_benchmark(where + "copy",
                  [=, &context](benchmark::State& state) { measure_copy(state, context, dtype, batch); });
    for (const Layer& layer : kLayers)
      for (int pass = 0; pass < 3; ++pass)
        add_benchmark(
            concat(where, kPasses[pass], "/", layer.size, "x", layer.channels, "/k", layer.kernel, "s", layer.stride),
            [=, &context](benchmark::State& state) { measure(state, context, dtype, batch, layer, pass); });
  }
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  BatchFlag batch;
  cli::FlagSet flags("depthwise_bench", "[flags]", "Bandwidth of depthwise convolutions.");
  batch.declare(flags);
  return run_op_program(flags, argc, argv, [&](Context& context) { register_all(context, batch.on(context)); });
}
