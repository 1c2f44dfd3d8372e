// GF/s of every distinct convolution of ResNet-50 v1.5, forward and both gradients: as the engine runs it and by
// oneDNN's direct algorithm alone. Best of a few runs in alternation; the totals weigh each shape by its count.
//   conv_bench --batch 16 --threads 2
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <limits>

#include "libdtrain/core/rng.h"
#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/ops/conv2d.h"

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

// Processor time of one thread is untouched by what else the machine does; of several only wall time says anything.
double now(int threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// One layer with its tensors.
class Case {
 public:
  Case(Context& context, const Layer& layer, int64_t batch) : context_(context) {
    options_.stride = layer.stride;
    options_.padding = layer.kernel / 2;
    const Shape x{batch, layer.size, layer.size, layer.c}, w{layer.k, layer.kernel, layer.kernel, layer.c};
    const Shape y = conv2d_shape(x, w, options_);
    x_ = random(x), w_ = random(w), y_ = random(y), dx_ = random(x), dw_ = random(w);
    const int64_t pad = layer.kernel / 2;
    shape_ = {batch,        layer.size,   layer.size, layer.c, layer.k, layer.kernel, layer.kernel, y[1], y[2],
              layer.stride, layer.stride, 1,          1,       pad,     pad,          pad,          pad,  1};
  }

  int64_t multiply_adds() const { return y_.count() * w_.count() / w_.dim(0); }

  void run(int pass, bool direct) {
    const float *x = x_.data<float>(), *w = w_.data<float>(), *y = y_.data<float>();
    if (pass == 0)
      direct ? cpu::direct_conv(context_, shape_, x, w, nullptr, y_.data<float>())
             : cpu::conv2d(context_, x_, w_, {}, options_, y_);
    else if (pass == 1)
      direct ? cpu::direct_conv_dgrad(context_, shape_, y, w, dx_.data<float>(), false)
             : cpu::conv2d_dgrad(context_, y_, w_, options_, dx_, false);
    else
      direct ? cpu::direct_conv_wgrad(context_, shape_, x, y, dw_.data<float>(), false)
             : cpu::conv2d_wgrad(context_, x_, y_, options_, dw_, false);
  }

 private:
  Tensor random(Shape shape) {
    Tensor tensor = context_.empty(shape);
    RandomStream stream(1, 0);
    for (float& value : tensor.span<float>()) value = stream.uniform(-1, 1);
    return tensor;
  }

  Context& context_;
  Conv2dOptions options_;
  cpu::ConvShape shape_;
  Tensor x_, w_, y_, dx_, dw_;
};

constexpr const char* kPasses[] = {"forward", "dgrad", "wgrad"};

// Seconds of [engine, direct], the best of `repeats`.
std::array<double, 2> time_pass(Case& layer, int pass, int threads, int repeats) {
  std::array<double, 2> best{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  for (int i = 0; i <= repeats; ++i)  // the first makes the primitives and touches the memory
    for (size_t arm : {0, 1}) {
      const double start = now(threads);
      layer.run(pass, arm == 1);
      if (i > 0) best[arm] = std::min(best[arm], now(threads) - start);
    }
  return best;
}

void measure(int64_t batch, int threads, int repeats) {
  const auto context = make_cpu_context({.threads = threads});
  fmt::print("ResNet-50 v1.5, batch {}, {} threads: GF/s of the engine / of oneDNN's direct algorithm\n", batch,
             context->threads());
  fmt::print("{:>5} {:>5} {:>5} {:>7} {:>6} {:>6}", "size", "c", "k", "kernel", "stride", "count");
  for (const char* pass : kPasses) fmt::print(" {:>21}", pass);
  fmt::print("\n");
  double total[3][2] = {}, flops[3] = {};
  for (const Layer& layer : kLayers) {
    Case one(*context, layer, batch);
    fmt::print("{:>5} {:>5} {:>5} {:>7} {:>6} {:>6}", layer.size, layer.c, layer.k, layer.kernel, layer.stride,
               layer.count);
    for (int pass = 0; pass < 3; ++pass) {
      if (layer.c == 3 && pass == 1) {  // nobody wants the gradient of the images
        fmt::print(" {:>21}", "-");
        continue;
      }
      const auto seconds = time_pass(one, pass, context->threads(), repeats);
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

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  int64_t batch = 16;
  int threads = 0, repeats = 3;
  CLI::App app("Times the convolutions of ResNet-50.");
  app.add_option("--batch", batch, "images")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", threads, "0: OpenMP's choice")->capture_default_str();
  app.add_option("--repeats", repeats, "runs of each, the best counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    dtrain::measure(batch, threads, repeats);
  } catch (const std::exception& error) {
    std::cerr << "conv_bench: " << error.what() << "\n";
    return 1;
  }
}
