// Every distinct convolution of ResNet-50 v1.5, forward and both gradients.
// On a CPU GF/s: as the engine runs it and by oneDNN's direct algorithm alone. Best of a few runs in alternation; the
// totals weigh each shape by its count. Then, for layers that make the gradient of the batch norm after them, the time
// of all three gradients, with that one in memory and by blocks.
//   conv_bench --batch 16 --threads 2 --precision bf16
// On a GPU the time of each in TF32, bf16 and f16 with the best plan there is, and the time of all 158 of a step: what
// a step takes at least. The first run chooses the plans, which takes a minute or so; --plan_file keeps them.
//   conv_bench --device gpu --batch 256 --benchmark_format json
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "benchmarks/devices.h"
#include "benchmarks/json.h"
#include "benchmarks/program.h"
#include "dtrain/core/dispatch.h"
#include "dtrain/core/rng.h"
#include "dtrain/ops/conv2d.h"
#include "libdtrain/cpu/conv/onednn.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/conv_bn_fusion.h"

namespace dtrain {
namespace {

// A convolution of `kernel` x `kernel` with padding kernel / 2, and how many of it the network has.
struct Layer {
  int64_t size, c, k;
  int kernel, stride, count;
};

constexpr Layer kLayers[] = {
    {224, 3, 64, 7, 2, 1},     {56, 64, 64, 1, 1, 1},    {56, 64, 64, 3, 1, 3},    {56, 64, 256, 1, 1, 4},
    {56, 256, 64, 1, 1, 2},    {56, 256, 128, 1, 1, 1},  {56, 128, 128, 3, 2, 1},  {28, 128, 512, 1, 1, 4},
    {56, 256, 512, 1, 2, 1},   {28, 512, 128, 1, 1, 3},  {28, 128, 128, 3, 1, 3},  {28, 512, 256, 1, 1, 1},
    {28, 256, 256, 3, 2, 1},   {14, 256, 1024, 1, 1, 6}, {28, 512, 1024, 1, 2, 1}, {14, 1024, 256, 1, 1, 5},
    {14, 256, 256, 3, 1, 5},   {14, 1024, 512, 1, 1, 1}, {14, 512, 512, 3, 2, 1},  {7, 512, 2048, 1, 1, 3},
    {14, 1024, 2048, 1, 2, 1}, {7, 2048, 512, 1, 1, 2},  {7, 512, 512, 3, 1, 2},
};

// One thread's processor time is untouched by what else the machine does; for several, only wall time says anything.
double now(int threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Random signs and mantissas, magnitudes from 1/32 to 1: zeros would cost less power than a training step does.
Tensor random(Context& context, const Shape& shape, DType dtype) {
  const Tensor tensor = context.empty(shape, dtype);
  const int mantissa = dtype == DType::f32 ? 23 : dtype == DType::bf16 ? 7 : 10;
  const int bits = static_cast<int>(8 * size_of(dtype)), one = dtype == DType::f16 ? 15 : 127;
  const int64_t block = std::min<int64_t>(tensor.count(), 1 << 20);
  std::vector<unsigned char> bytes(static_cast<size_t>(block) * size_of(dtype));
  RandomStream stream(1, 0);
  for (size_t i = 0; i < bytes.size(); i += size_of(dtype)) {
    const uint32_t noise = stream.next(), exponent = static_cast<uint32_t>(one) - 1 - noise % 5;
    const uint32_t sign = noise >> 31, fraction = (noise >> 3) & ((1u << mantissa) - 1);
    const uint32_t value = sign << (bits - 1) | exponent << mantissa | fraction;
    std::memcpy(&bytes[i], &value, size_of(dtype));  // little-endian: the low bytes come first
  }
  const Tensor flat = tensor.view({tensor.count()});
  for (int64_t at = 0; at < flat.count(); at += block)
    context.upload(bytes.data(), flat.slice(at, std::min(at + block, flat.count())));
  return tensor;
}

// One layer with its tensors.
class Case {
 public:
  Case(Context& context, const Layer& layer, int64_t batch, DType dtype) : context_(context), dtype_(dtype) {
    options_.stride = layer.stride;
    options_.padding = layer.kernel / 2;
    const Shape x{batch, layer.size, layer.size, layer.c}, w{layer.k, layer.kernel, layer.kernel, layer.c};
    const Shape y = conv2d_shape(x, w, options_);
    x_ = random(context, x, dtype), w_ = random(context, w, dtype), y_ = random(context, y, dtype);
    dx_ = context.empty(x, dtype), dw_ = context.empty(w);
    const int64_t pad = layer.kernel / 2;
    shape_ = {batch,        layer.size,   layer.size, layer.c, layer.k, layer.kernel, layer.kernel, y[1], y[2],
              layer.stride, layer.stride, 1,          1,       pad,     pad,          pad,          pad,  1};
  }

  int64_t multiply_adds() const { return y_.count() * w_.count() / w_.dim(0); }
  bool defers() const { return cpu::defers_gradient(context_, x_.shape(), w_.shape(), options_, dtype_); }

  // The gradients of the layer and of a batch norm with relu after it.
  void run_gradients(bool by_blocks) {
    const Shape channels{shape_.k};
    const Tensor& dz = y_;
    const Tensor some = random(context_, channels, DType::f32), dgamma = context_.empty(channels),
                 dbeta = context_.empty(channels);
    const BatchNormSaved saved{.x = y_,
                               .y = {},
                               .mask = {},
                               .mean = some,
                               .inv_std = some,
                               .gamma = some,
                               .beta = some,
                               .activation = Activation::relu};
    if (by_blocks) {
      DeferredGrad deferred;
      cpu::batch_norm_grad(context_, dz, saved,
                           {.dx = {}, .dgamma = dgamma, .dbeta = dbeta, .dresidual = {}, .deferred = &deferred});
      cpu::conv2d_grads_deferred(context_, x_, w_, options_, deferred, dz, {dw_}, {dx_});
    } else {
      const Tensor dy = context_.empty(y_.shape(), dtype_);
      cpu::batch_norm_grad(context_, dz, saved, {.dx = dy, .dgamma = dgamma, .dbeta = dbeta, .dresidual = {}});
      cpu::conv2d_wgrad(context_, x_, dy, options_, dw_, false);
      cpu::conv2d_dgrad(context_, dy, w_, options_, dx_, false);
    }
  }

  void run(int pass, bool direct) {
    if (direct) return cpu::with_elements(dtype_, [&]<class T>(T) { run_onednn<T>(pass); });
    if (pass == 0)
      cpu::conv2d(context_, x_, w_, {}, options_, y_);
    else if (pass == 1)
      cpu::conv2d_dgrad(context_, y_, w_, options_, dx_, false);
    else
      cpu::conv2d_wgrad(context_, x_, y_, options_, dw_, false);
  }

 private:
  template <class T>
  void run_onednn(int pass) {
    using Conv = cpu::OnednnConv<T>;
    if (pass == 0)
      Conv::forward(context_, shape_, {.x = x_.data<T>(), .w = w_.data<T>(), .y = y_.data<T>()});
    else if (pass == 1)
      Conv::dgrad(context_, shape_, {.w = w_.data<T>(), .dy = y_.data<T>(), .dx = dx_.data<T>()});
    else
      Conv::wgrad(context_, shape_, {.x = x_.data<T>(), .dy = y_.data<T>(), .dw = dw_.data<float>()});
  }

  Context& context_;
  DType dtype_;
  Conv2dOptions options_;
  cpu::ConvShape shape_;
  Tensor x_, w_, y_, dx_, dw_;
};

constexpr const char* kPasses[] = {"forward", "dgrad", "wgrad"};

// Seconds of run(0) and of run(1), the best of `repeats`.
std::array<double, 2> time_both(const std::function<void(int)>& run, int threads, int64_t repeats) {
  std::array<double, 2> best{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  for (int64_t i = 0; i <= repeats; ++i)  // the first makes the primitives and touches the memory
    for (int arm : {0, 1}) {
      const double start = now(threads);
      run(arm);
      double& least = best[static_cast<size_t>(arm)];
      if (i > 0) least = std::min(least, now(threads) - start);
    }
  return best;
}

void measure(int64_t batch, int threads, int64_t repeats, DType dtype) {
  const auto context = make_cpu_context(cli::with_environment(CpuOptions{.threads = threads}));
  fmt::print("ResNet-50 v1.5 in {}, batch {}, {} threads: GF/s of the engine / of oneDNN's direct algorithm\n",
             name_of(dtype), batch, context->threads());
  fmt::print("{:>5} {:>5} {:>5} {:>7} {:>6} {:>6}", "size", "c", "k", "kernel", "stride", "count");
  for (const char* pass : kPasses) fmt::print(" {:>21}", pass);
  fmt::print("\n");
  double total[3][2] = {}, flops[3] = {};
  for (const Layer& layer : kLayers) {
    Case one(*context, layer, batch, dtype);
    fmt::print("{:>5} {:>5} {:>5} {:>7} {:>6} {:>6}", layer.size, layer.c, layer.k, layer.kernel, layer.stride,
               layer.count);
    for (int pass = 0; pass < 3; ++pass) {
      if (layer.c == 3 && pass == 1) {  // the images need no gradient
        fmt::print(" {:>21}", "-");
        continue;
      }
      const auto seconds = time_both([&](int arm) { one.run(pass, arm == 1); }, context->threads(), repeats);
      const double flop = 2 * static_cast<double>(one.multiply_adds());
      fmt::print(" {:>7.1f} /{:>6.1f} {:>5.2f}", 1e-9 * flop / seconds[0], 1e-9 * flop / seconds[1],
                 seconds[1] / seconds[0]);
      for (int arm = 0; arm < 2; ++arm) total[pass][arm] += layer.count * seconds[static_cast<size_t>(arm)];
      flops[pass] += layer.count * flop;
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  double all[2] = {};
  fmt::print("{:>39}", "all, weighted by count");
  for (int pass = 0; pass < 3; ++pass) {
    for (int arm = 0; arm < 2; ++arm) all[arm] += total[pass][arm];
    fmt::print(" {:>7.1f} /{:>6.1f} {:>5.2f}", 1e-9 * flops[pass] / total[pass][0], 1e-9 * flops[pass] / total[pass][1],
               total[pass][1] / total[pass][0]);
  }
  fmt::print("\nconvolutions alone: {:.2f} images/s, direct {:.2f}, ratio {:.2f}\n",
             static_cast<double>(batch) / all[0], static_cast<double>(batch) / all[1], all[1] / all[0]);
}

void measure_deferred(int64_t batch, int threads, int64_t repeats, DType dtype) {
  const auto context = make_cpu_context(cli::with_environment(CpuOptions{.threads = threads}));
  fmt::print(
      "\ngradients of a 1x1 convolution and of the batch norm after it: ms with that one in memory / by blocks\n");
  double total[2] = {};
  for (const Layer& layer : kLayers) {
    Case one(*context, layer, batch, dtype);
    if (!one.defers()) continue;
    const auto seconds = time_both([&](int arm) { one.run_gradients(arm == 1); }, context->threads(), repeats);
    fmt::print("{:>5} {:>5} {:>5} {:>7} {:>6} {:>6} {:>7.1f} /{:>6.1f} {:>5.2f}\n", layer.size, layer.c, layer.k,
               layer.kernel, layer.stride, layer.count, 1e3 * seconds[0], 1e3 * seconds[1], seconds[0] / seconds[1]);
    for (size_t arm : {0, 1}) total[arm] += 1e3 * layer.count * seconds[arm];
  }
  fmt::print("{:>39} {:>7.1f} /{:>6.1f} {:>5.2f}\n", "all, weighted by count", total[0], total[1], total[0] / total[1]);
}

// One layer on a GPU in one type. Its images have `channels`, of which the layer's are filled.
class GpuCase {
 public:
  GpuCase(Context& context, const Layer& layer, int64_t batch, DType dtype, int64_t channels) : context_(context) {
    options_.stride = layer.stride;
    options_.padding = layer.kernel / 2;
    const Shape x{batch, layer.size, layer.size, channels}, w{layer.k, layer.kernel, layer.kernel, channels};
    const Shape y = conv2d_shape(x, w, options_);
    x_ = random(context, x, dtype), w_ = random(context, w, dtype), y_ = random(context, y, dtype);
    dx_ = context.empty(x, dtype), dw_ = context.empty({layer.k, layer.kernel, layer.kernel, layer.c});
  }

  double multiply_adds() const { return static_cast<double>(y_.count() * dw_.count() / dw_.dim(0)); }

  double seconds(int pass, int64_t repeats) {
    return median_seconds(context_, repeats, [this, pass] { run(pass); });
  }

 private:
  void run(int pass) {
    if (pass == 0) DT_DISPATCH(context_, conv2d)(x_, w_, Tensor(), options_, y_);
    if (pass == 1) DT_DISPATCH(context_, conv2d_dgrad)(y_, w_, options_, dx_, false);
    if (pass == 2) DT_DISPATCH(context_, conv2d_wgrad)(x_, y_, options_, dw_, false);
  }

  Context& context_;
  Conv2dOptions options_;
  Tensor x_, w_, y_, dx_, dw_;
};

// Images are padded to 16 bytes per pixel.
int64_t padded_channels(const Layer& layer, DType dtype) {
  return layer.c == 3 ? static_cast<int64_t>(16 / size_of(dtype)) : layer.c;
}

struct GpuResult {
  std::string name;
  int count;
  double seconds;
  std::optional<double> tflops, images_per_second;
};

void measure_type(std::vector<GpuResult>& results, int64_t batch, DType dtype, int64_t repeats,
                  const std::string& plan_file) {
  const auto context = make_cuda_context(cli::with_environment({.tf32 = true, .plan_file = plan_file}));
  const std::string type = dtype == DType::f32 ? "tf32" : concat(dtype);
  constexpr const char* kNames[] = {"fprop", "dgrad", "wgrad"};
  double all = 0;
  const auto add = [&](const Layer& layer, int64_t channels, int count) {
    GpuCase one(*context, layer, batch, dtype, channels);
    for (int pass = 0; pass < 3; ++pass) {
      if (layer.c == 3 && pass == 1) continue;  // the images need no gradient
      const double seconds = one.seconds(pass, repeats);
      all += count * seconds;
      results.push_back({.name = fmt::format("{} {} {}x{}->{} {}x{}/{}{}", type, kNames[pass], layer.c, layer.size,
                                             layer.k, layer.kernel, layer.kernel, layer.stride,
                                             count ? "" : fmt::format(", {} channels", channels)),
                         .count = count,
                         .seconds = seconds,
                         .tflops = 2e-12 * one.multiply_adds() / seconds,
                         .images_per_second = {}});
    }
  };
  for (const Layer& layer : kLayers) add(layer, padded_channels(layer, dtype), layer.count);
  results.push_back({.name = type + " all convolutions of a step",
                     .count = 1,
                     .seconds = all,
                     .tflops = {},
                     .images_per_second = static_cast<double>(batch) / all});
  if (dtype != DType::f32) add(kLayers[0], 4, 0);  // would half the padding do for the stem?
  for (const std::string& notice : context->notices()) cli::print_message("conv_bench", notice);
}

void print_as_json(const std::vector<GpuResult>& results, int64_t batch) {
  std::vector<JsonObject> rows;
  for (const GpuResult& one : results) {
    JsonObject& row = rows.emplace_back(JsonObject{{"count", one.count}});
    if (one.images_per_second) row.emplace_back("images_per_sec", *one.images_per_second);
    row.emplace_back("name", one.name);
    row.emplace_back("real_time", 1e6 * one.seconds);
    if (one.tflops) row.emplace_back("tflops", *one.tflops);
    row.emplace_back("time_unit", "us");
  }
  print_json(rows, {{"batch", batch}});
}

void measure_gpu(int64_t batch, int64_t repeats, const std::string& plan_file, bool json) {
  std::vector<GpuResult> results;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    measure_type(results, batch, dtype, repeats, plan_file);
  if (json) return print_as_json(results, batch);
  for (const GpuResult& one : results)
    fmt::print("{:<44} {:>3} x {:>9.1f} us {:>7.1f} TFLOP/s\n", one.name, one.count, 1e6 * one.seconds,
               one.tflops.value_or(0));
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  int64_t batch = 16, threads = 0, repeats = 3;
  std::string device = "cpu", precision = "fp32", format = "console", plan_file;
  cli::FlagSet flags("conv_bench", "[flags]", "Times the convolutions of ResNet-50.");
  flags.add("batch", batch, "images", kPositiveBatch);
  flags.add("threads", threads, "0: OpenMP's choice", cli::kThreads);
  flags.add("repeats", repeats, "runs of each, of which the best is taken, on a GPU the median", cli::kPositiveCount);
  flags.add_choice("device", device, {"cpu", "gpu"}, "where it runs");
  flags.add_choice("precision", precision, {"fp32", "bf16"}, "type of images and filters on a CPU");
  flags.add("plan_file", plan_file, "where a GPU's choices are kept");
  flags.add_choice("benchmark_format", format, {"console", "json"}, "format of a GPU's results");
  return run_program(flags, argc, argv, [&] {
    const DType dtype = precision == "bf16" ? DType::bf16 : DType::f32;
    if (device == "gpu") return measure_gpu(batch, repeats, plan_file, format == "json");
    measure(batch, static_cast<int>(threads), repeats, dtype);
    measure_deferred(batch, static_cast<int>(threads), repeats, dtype);
  });
}
