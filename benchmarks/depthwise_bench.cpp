// The depthwise convolutions of MobileNet v1 at 224 pixels, and some of NASNet's larger kernels: forward, data gradient
// and filter gradient of each, in GB/s of the images that a pass has to read and to write, beside those of a plain
// copy.
//   depthwise_bench --device cpu --batch 16 --benchmark_filter=forward
#include <iostream>

#include "benchmarks/devices.h"
#include "libdtrain/core/dispatch.h"
#include "libdtrain/core/rng.h"
#include "libdtrain/ops/compute_copy.h"
#include "libdtrain/ops/conv2d.h"

namespace dtrain {
namespace {

struct Layer {
  int64_t size, channels;
  int kernel, stride;
};

// peers/depthwise_peer.py has the same.
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

template <class Measure>
void add(const std::string& name, const Measure& measure) {
  benchmark::RegisterBenchmark(name.c_str(), measure)->Unit(benchmark::kMillisecond)->UseRealTime();
}

void register_all(Context& context, int64_t batch) {
  for (const DType dtype : types_of(context)) {
    const std::string where = concat(context.device(), "/", dtype, "/");
    add(where + "copy", [=, &context](benchmark::State& state) { measure_copy(state, context, dtype, batch); });
    for (const Layer& layer : kLayers)
      for (int pass = 0; pass < 3; ++pass)
        add(concat(where, kPasses[pass], "/", layer.size, "x", layer.channels, "/k", layer.kernel, "s", layer.stride),
            [=, &context](benchmark::State& state) { measure(state, context, dtype, batch, layer, pass); });
  }
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::string device = "all";
  int64_t batch = 0;
  CLI::App app("GB/s of depthwise convolutions; Google Benchmark's flags besides");
  add_device_flag(app, device);
  app.add_option("--batch", batch, "samples; by default 16 on a CPU and 256 on a GPU")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto contexts = make_contexts(device);
  for (const auto& context : contexts) register_all(*context, batch > 0 ? batch : context->is_cpu() ? 16 : 256);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    return dtrain::run(argc, argv);
  } catch (const dtrain::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
