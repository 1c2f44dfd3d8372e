// Inference of a classifier with random weights and images on a CPU: median milliseconds per call, and the relative
// difference of the logits from fp32. One line of JSON.
//   inference_bench --model resnet50_v1.5 --batch 1 --precision int8 --threads 2 --seconds 5
// Peer with other runtimes: benchmarks/peers/inference_peer.py.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "apps/cli/environment.h"
#include "benchmarks/json.h"
#include "benchmarks/program.h"
#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/core/rng.h"
#include "dtrain/models/catalog.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/calibrator.h"

namespace dtrain {
namespace {

struct Options {
  std::string model = "resnet50_v1.5", precision = "fp32";
  int64_t batch = 1, threads = 0, warmup = 3;
  double seconds = 5;
};

// Model prepared for inference in one precision.
struct Network {
  Network(Context& context, const Options& o, DType dtype)
      : store(context),
        model(models::make_classifier(store, models::classifier_info(o.model, "imagenet"), {.classes = 1000})) {
    store.allocate(1, {.dtype = dtype, .gradients = false});
  }
  Tensor run(const Tensor& images) {
    Tape tape(store.context(), prepared);
    return model.forward(tape, tape.constant(images)).value;
  }

  ParameterStore store;
  models::Classifier model;
  PreparedWeights prepared{store};
};

Tensor drawn_images(Context& context, int64_t batch, int64_t size) {
  const Tensor images = context.empty({batch, size, size, 3});
  RandomStream draws(1, 1);
  for (float& value : images.span<float>()) value = draws.uniform(-1, 1);
  return images;
}

void quantize(Network& network, const Tensor& images) {
  Calibrator calibrator(network.store);
  {
    Tape tape(network.store.context(), network.prepared);
    calibrator.observe(tape);
    network.model.forward(tape, tape.constant(images));
  }
  network.prepared.quantize(layers_of(calibrator.layers(RangeRule::max), network.store));
}

double relative_difference(const Tensor& found, const Tensor& expected) {
  double squares = 0, of = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double y = expected.data<float>()[i];
    const double x = found.dtype() == DType::bf16 ? found.data<Bf16>()[i] : found.data<float>()[i];
    squares += (x - y) * (x - y);
    of += y * y;
  }
  return std::sqrt(squares / of);
}

double median_milliseconds(Network& network, const Tensor& images, const Options& o) {
  using Clock = std::chrono::steady_clock;
  for (int64_t i = 0; i < o.warmup; ++i) network.run(images);
  std::vector<double> times;
  for (const auto begin = Clock::now();
       times.size() < 3 || std::chrono::duration<double>(Clock::now() - begin).count() < o.seconds;) {
    const auto start = Clock::now();
    network.run(images);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

void run(const Options& o) {
  const auto context = make_cpu_context(cli::with_environment(CpuOptions{.threads = static_cast<int>(o.threads)}));
  Network network(*context, o, o.precision == "bf16" ? DType::bf16 : DType::f32);
  Tensor images = drawn_images(*context, o.batch, network.model.image_size);
  const Tensor expected = Network(*context, o, DType::f32).run(images);
  if (o.precision == "int8") quantize(network, images);
  if (o.precision == "bf16") {
    const Tensor narrow = context->empty(images.shape(), DType::bf16);
    for (int64_t i = 0; i < images.count(); ++i) narrow.data<Bf16>()[i] = to_bf16(images.data<float>()[i]);
    images = narrow;
  }
  const double ms = median_milliseconds(network, images, o);
  print_json({{"model", o.model},
              {"precision", o.precision},
              {"batch", o.batch},
              {"threads", context->threads()},
              {"ms", ms},
              {"logits_off_by", relative_difference(network.run(images), expected)}});
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  Options o;
  cli::FlagSet flags("inference_bench", "[flags]", "Inference of a classifier on a CPU.");
  flags.add("model", o.model, "name of an ImageNet classifier");
  flags.add_choice("precision", o.precision, {"fp32", "bf16", "int8"}, "precision");
  flags.add("batch", o.batch, "images per call", kPositiveBatch);
  flags.add("threads", o.threads, "CPU threads; 0: OpenMP's default", cli::kThreads);
  flags.add("warmup", o.warmup, "warm-up calls", cli::kCount);
  flags.add("seconds", o.seconds, "measuring time; at least three calls", cli::kNotNegative);
  return run_program(flags, argc, argv, [&] { run(o); });
}
