// Convolution chains of ResNet-50's bottlenecks on a GPU, forward and backward, in f16, by batch-norm fusion: none
// (applied), normalisation in the load of the next convolution (on_load), batch-norm gradient sums in the epilogue of
// dgrad (in_dgrad), both, and the engine's measured choice (chosen), which is kept in the plan file. The last row is
// the sum over a step.
//   chain_bench --batch 256 --benchmark_format json
// `saved` is the traffic that on_load saves in forward: writing and reading the output of each batch norm between two
// convolutions. Backward traffic is equal; in_dgrad reads the images once more in dgrad, and saves the batch norm's
// second read unless it hits the cache.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "benchmarks/devices.h"
#include "benchmarks/json.h"
#include "benchmarks/program.h"
#include "dtrain/core/rng.h"
#include "dtrain/ops/conv_bn_act.h"
#include "libdtrain/ops/batch_norm_schedule.h"

namespace dtrain {
namespace {

// Bottleneck block: 1x1 to `width` channels, 3x3 with this stride, 1x1 to 4 * `width` channels.
struct Bottleneck {
  int64_t size, in, width;
  int stride, count;
};
constexpr Bottleneck kBottlenecks[] = {{56, 64, 64, 1, 1},    {56, 256, 64, 1, 2},  {56, 256, 128, 2, 1},
                                       {28, 512, 128, 1, 3},  {28, 512, 256, 2, 1}, {14, 1024, 256, 1, 5},
                                       {14, 1024, 512, 2, 1}, {7, 2048, 512, 1, 2}};

struct Way {
  const char* name;
  int on_load, in_dgrad;
};
constexpr Way kWays[] = {{"applied", 0, 0}, {"on_load", 1, 0}, {"in_dgrad", 0, 1}, {"both", 1, 1}, {"chosen", -1, -1}};

class Chain {
 public:
  Chain(Context& context, const Bottleneck& block, int64_t batch) : context_(context) {
    Shape shape{batch, block.size, block.size, block.in};
    x_ = random(shape, 1);
    for (const int i : {0, 1, 2}) {
      const int kernel = i == 1 ? 3 : 1;
      const Shape w{i == 2 ? 4 * block.width : block.width, kernel, kernel, shape[3]}, channels{w[0]};
      ConvBnActLayer layer;
      layer.conv = {.stride = i == 1 ? block.stride : 1, .padding = kernel / 2};
      shape = conv2d_shape(shape, w, layer.conv);
      layer.w.value = random(w, 0.1f);
      for (Tensor* of : {&layer.gamma.value, &layer.state.running_var}) *of = filled(channels, 1);
      for (Tensor* of : {&layer.beta.value, &layer.state.running_mean}) *of = filled(channels, 0);
      if (i < 2) saved_ += 2.0 * static_cast<double>(shape.count()) * static_cast<double>(size_of(DType::f16));
      layers_.push_back(layer);
    }
    residual_ = random(shape, 1), dy_ = random(shape, 1e-3f);
  }

  double saved_bytes() const { return saved_; }

  double seconds(const Way& way, int64_t repeats) {
    set_batch_norm_schedule(context_, {.on_load = way.on_load, .in_dgrad = way.in_dgrad, .measure_fusions = true});
    return median_seconds(context_, repeats, [this] { step(); });
  }

 private:
  void step() {
    Tape tape(context_);
    const Var x = tape.variable(x_), residual = tape.variable(residual_);
    std::vector<ConvBnActLayer> layers = layers_;
    for (ConvBnActLayer& layer : layers)
      for (Var* parameter : {&layer.w, &layer.gamma, &layer.beta})
        *parameter = tape.variable(parameter->value, DType::f32);
    const Var y = conv_bn_act(tape, x, layers, &residual);
    tape.backward(tape.record("gradient", context_.empty({1}), {&y},
                              [y = y.without_value(), this](Tape& t, const Tensor&) { t.pass_grad(y, dy_); }));
  }

  Tensor filled(Shape shape, float value) {
    const Tensor tensor = context_.empty(shape);
    context_.upload(std::vector<float>(static_cast<size_t>(shape.count()), value).data(), tensor);
    return tensor;
  }
  // Random sign, exponent and mantissa: zeros would draw less power than training does.
  Tensor random(Shape shape, float size) {
    const Tensor tensor = context_.empty(shape, DType::f16), flat = tensor.view({shape.count()});
    const int64_t block = std::min<int64_t>(shape.count(), 1 << 20);
    std::vector<uint16_t> bits(static_cast<size_t>(block));
    RandomStream stream(1, 0);
    const int exponent = 14 + static_cast<int>(std::floor(std::log2(size)));
    for (uint16_t& value : bits) {
      const uint32_t noise = stream.next();
      value = static_cast<uint16_t>((noise >> 31) << 15 | static_cast<uint32_t>(exponent - noise % 4) << 10 |
                                    (noise >> 8 & 1023));
    }
    for (int64_t at = 0; at < flat.count(); at += block)
      context_.upload(bits.data(), flat.slice(at, std::min(at + block, flat.count())));
    return tensor;
  }

  Context& context_;
  Tensor x_, residual_, dy_;
  std::vector<ConvBnActLayer> layers_;
  double saved_ = 0;
};

struct Result {
  std::string name;
  int count;
  double seconds;
  std::optional<double> saved_mb;
};

std::vector<Result> measure(int64_t batch, int64_t repeats, const std::string& plan_file) {
  const auto context = make_cuda_context(cli::with_environment({.plan_file = plan_file}));
  std::vector<Result> results;
  double all[std::size(kWays)] = {};
  for (const Bottleneck& block : kBottlenecks) {
    Chain chain(*context, block, batch);
    for (size_t i = 0; i < std::size(kWays); ++i) {
      const double seconds = chain.seconds(kWays[i], repeats);
      all[i] += block.count * seconds;
      results.push_back(
          {fmt::format("{}x{}->{}/{} {}", block.in, block.size, 4 * block.width, block.stride, kWays[i].name),
           block.count, seconds, kWays[i].on_load == 1 ? 1e-6 * chain.saved_bytes() : 0});
    }
  }
  for (size_t i = 0; i < std::size(kWays); ++i)
    results.push_back({fmt::format("all bottlenecks of a step {}", kWays[i].name), 1, all[i], {}});
  for (const std::string& notice : context->notices()) cli::print_message("chain_bench", notice);
  return results;
}

void print(const std::vector<Result>& results) {
  for (const auto& [name, count, seconds, saved_mb] : results)
    fmt::print("{:<36} {:>3} x {:>9.1f} us, saved {:>6.1f} MB\n", name, count, 1e6 * seconds, saved_mb.value_or(0));
}

void print_as_json(const std::vector<Result>& results, int64_t batch) {
  std::vector<JsonObject> rows;
  for (const auto& [name, count, seconds, saved_mb] : results) {
    JsonObject& row = rows.emplace_back(JsonObject{{"count", count}, {"name", name}, {"real_time", 1e6 * seconds}});
    if (saved_mb) row.emplace_back("saved_mb", *saved_mb);
    row.emplace_back("time_unit", "us");
  }
  print_json(rows, {{"batch", batch}});
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  int64_t batch = 256, repeats = 3;
  std::string device = "gpu", format = "console", plan_file;
  cli::FlagSet flags("chain_bench", "[flags]",
                     "Times convolution chains of ResNet-50's bottlenecks by batch-norm fusion.");
  flags.add("batch", batch, "images per batch", kPositiveBatch);
  flags.add("repeats", repeats, "number of runs; the median is reported", cli::kPositiveCount);
  flags.add_choice("device", device, {"gpu"}, "device");
  flags.add("plan_file", plan_file, "file that keeps the measured choices");
  flags.add_choice("benchmark_format", format, {"console", "json"}, "output format");
  return run_program(flags, argc, argv, [&] {
    const std::vector<Result> results = measure(batch, repeats, plan_file);
    if (format == "json")
      print_as_json(results, batch);
    else
      print(results);
  });
}
