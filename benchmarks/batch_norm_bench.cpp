// Batch norm at every shape of ResNet-50 v1.5, forward and backward, with each schedule: time, and bandwidth of the
// compulsory traffic (each tensor read or written once).
//   batch_norm_bench --device gpu --dtype bf16 --batch 256 --benchmark_out=batch_norm.json
//   batch_norm_bench --batch 2 --threads 2
#include <benchmark/benchmark.h>

#include <vector>

#include "apps/cli/environment.h"
#include "benchmarks/program.h"
#include "dtrain/core/rng.h"
#include "dtrain/ops/batch_norm.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/batch_norm_schedule.h"
#include "libdtrain/ops/batch_norm_tiling.h"

namespace dtrain {
namespace {

// Images of `size` x `size` pixels, and the number of such batch norms in the network, 53 in all.
struct Layer {
  int64_t size, c;
  int count;
  Activation activation;
  bool residual;
};
constexpr Layer kLayers[] = {
    {112, 64, 1, Activation::relu, false}, {56, 64, 6, Activation::relu, false},
    {56, 256, 3, Activation::relu, true},  {56, 256, 1, Activation::none, false},
    {56, 128, 1, Activation::relu, false}, {28, 128, 7, Activation::relu, false},
    {28, 512, 4, Activation::relu, true},  {28, 512, 1, Activation::none, false},
    {28, 256, 1, Activation::relu, false}, {14, 256, 11, Activation::relu, false},
    {14, 1024, 6, Activation::relu, true}, {14, 1024, 1, Activation::none, false},
    {14, 512, 1, Activation::relu, false}, {7, 512, 5, Activation::relu, false},
    {7, 2048, 3, Activation::relu, true},  {7, 2048, 1, Activation::none, false},
};

struct Options {
  std::string device = "cpu", dtype = "f32";
  int64_t batch = 2;
  int64_t threads = 0;
  DType type() const { return dtype == "bf16" ? DType::bf16 : dtype == "f16" ? DType::f16 : DType::f32; }
};

// Random signs and mantissas, magnitudes 1 to 2. Repeats a block, since drawing all numbers would take longer than the
// measurement.
Tensor random_images(Context& context, Shape shape, DType dtype, uint64_t seed) {
  const Tensor images = context.empty(shape, dtype), flat = images.view({shape.count()});
  const int64_t block = std::min<int64_t>(shape.count(), 1 << 20);
  RandomStream random(seed, 0);
  auto upload = [&]<class Word>(Word one, Word varied) {
    std::vector<Word> words(static_cast<size_t>(block));
    for (Word& word : words) word = static_cast<Word>(one | (random.next() & varied));
    for (int64_t at = 0; at < shape.count(); at += block)
      context.upload(words.data(), flat.slice(at, std::min(at + block, shape.count())));
    context.synchronize("random_images");
  };
  if (dtype == DType::f32)
    upload(uint32_t{0x3f800000}, uint32_t{0x807fffff});
  else if (dtype == DType::bf16)
    upload(uint16_t{0x3f80}, uint16_t{0x807f});
  else
    upload(uint16_t{0x3c00}, uint16_t{0x83ff});
  return images;
}

Tensor filled(Context& context, int64_t count, float value) {
  const Tensor tensor = context.empty({count});
  context.upload(std::vector<float>(static_cast<size_t>(count), value).data(), tensor);
  context.synchronize("filled");
  return tensor;
}

class Bench {
 public:
  Bench(Context& context, const Options& options, const Layer& layer)
      : context_(context),
        layer_(layer),
        dtype_(options.type()),
        shape_{options.batch, layer.size, layer.size, layer.c},
        x_(random_images(context, shape_, dtype_, 1)),
        residual_(random_images(context, shape_, dtype_, 2)),
        dy_(random_images(context, shape_, dtype_, 3)),
        gamma_(filled(context, layer.c, 1)),
        beta_(filled(context, layer.c, 0)),
        state_{filled(context, layer.c, 0), filled(context, layer.c, 1)} {}

  // Seconds of one forward or backward pass by the device's clock; on a GPU the mean of several queued passes.
  double seconds(bool backward) {
    const int together = context_.is_cpu() ? 1 : 10;
    Tape tape(context_);
    Var loss = tape.constant(filled(context_, 1, 0));
    Event start = context_.record();
    for (int call = 0; call < together; ++call) {
      const Var y = forward(tape);
      if (backward) loss = with_gradient(tape, y, loss);
    }
    if (backward) {
      start = context_.record();
      tape.backward(loss);
    }
    const Event end = context_.record();
    context_.wait(end);
    return context_.seconds_between(start, end) / together;
  }

  double ideal_bytes(bool backward) const {
    const auto images = static_cast<double>(shape_.count() * static_cast<int64_t>(size_of(dtype_)));
    const double mask = layer_.residual && !context_.is_cpu()
                            ? static_cast<double>(relu_mask_bytes(shape_.count() / layer_.c, layer_.c,
                                                                  static_cast<int64_t>(size_of(dtype_))))
                            : 0;
    return images * ((backward ? 3 : 2) + (layer_.residual ? 1 : 0)) + mask;
  }

 private:
  Var forward(Tape& tape) {
    const Var x = tape.variable(x_), residual = tape.variable(residual_);
    return batch_norm(tape, x, tape.variable(gamma_), tape.variable(beta_), state_, {}, layer_.activation,
                      layer_.residual ? &residual : nullptr);
  }
  // A scalar that depends on y and `before`, with dy as the gradient of y.
  Var with_gradient(Tape& tape, const Var& y, const Var& before) {
    return tape.record("dy", before.value, {&y, &before},
                       [y = y.without_value(), before = before.without_value(), dy = dy_](Tape& t, const Tensor& d) {
                         t.pass_grad(y, dy);
                         t.pass_grad(before, d);
                       });
  }

  Context& context_;
  Layer layer_;
  DType dtype_;
  Shape shape_;
  Tensor x_, residual_, dy_, gamma_, beta_;
  BatchNormState state_;
};

void measure(benchmark::State& state, Context& context, const Options& options, const Layer& layer, bool backward,
             BatchNormSchedule::Kind kind) {
  set_batch_norm_schedule(context, {.kind = kind});
  Bench bench(context, options, layer);
  bench.seconds(backward);  // warms up the memory pool
  double total = 0;
  for (auto _ : state) {
    const double seconds = bench.seconds(backward);
    state.SetIterationTime(seconds);
    total += seconds;
  }
  state.counters["GB/s"] = 1e-9 * bench.ideal_bytes(backward) * static_cast<double>(state.iterations()) / total;
  state.counters["count"] = layer.count;
}

void register_all(Context& context, const Options& options) {
  using Kind = BatchNormSchedule::Kind;
  std::vector<std::pair<const char*, Kind>> schedules{{"cpu", Kind::automatic}};
  if (!context.is_cpu()) schedules = {{"two_pass", Kind::two_pass}, {"resident", Kind::resident}};
  for (const Layer& layer : kLayers)
    for (const bool backward : {false, true})
      for (const auto& [name, kind] : schedules) {
        const std::string title = concat(backward ? "backward/" : "forward/", name, "/", layer.size, "x", layer.size,
                                         "x", layer.c, layer.residual ? "/residual" : "");
        benchmark::RegisterBenchmark(title.c_str(),
                                     [&context, &options, &layer, backward, kind = kind](benchmark::State& state) {
                                       measure(state, context, options, layer, backward, kind);
                                     })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
      }
}

void run(const Options& options) {
  const auto context = options.device == "cpu" ? make_cpu_context({.threads = static_cast<int>(options.threads)})
                                               : make_cuda_context(cli::with_environment());
  register_all(*context, options);
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  Options options;
  cli::FlagSet flags("batch_norm_bench", "[flags]", "Bandwidth of batch norm at every shape of ResNet-50.");
  flags.add_choice("device", options.device, {"cpu", "gpu"}, "device");
  flags.add_choice("dtype", options.dtype, {"f32", "bf16", "f16"}, "data type of the images; f16 needs a GPU");
  flags.add("batch", options.batch, "images per batch", kPositiveBatch);
  flags.add("threads", options.threads, "CPU threads; 0: OMP_NUM_THREADS", cli::kThreads);
  return run_google_program(flags, argc, argv, [&] { run(options); });
}
