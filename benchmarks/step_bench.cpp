// Training step of a classifier on synthetic images: images per second, breakdown, peak memory, and start-up time from
// process start to the first step. One line of JSON.
//   step_bench --model resnet50_v1.5 --batch 16 --size 224 --threads 2
//   step_bench --device gpu --precision bf16 --batch 256 --steps 40 --warmup 15 --cuda_graph=true
// Peer with PyTorch: benchmarks/peers/resnet50_peer.py.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "apps/cli/environment.h"
#include "apps/cli/synthetic_batch.h"
#include "benchmarks/json.h"
#include "benchmarks/program.h"
#include "dtrain/models/catalog.h"
#include "dtrain/ops/peaks.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/metrics.h"
#include "dtrain/train/trainer.h"

namespace dtrain {
namespace {

struct Options {
  std::string model = "resnet50_v1.5", device = "cpu", precision = "fp32", plan_file;
  bool cuda_graph = true, deterministic = false, peaks = false;
  int64_t batch = 16, size = 0, classes = 1000, threads = 0, steps = 5, warmup = 1;
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Wall time since the process was started, with a resolution of 10 ms.
double process_age() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;  // proc(5): starttime is field 22, the name field 2
  return seconds_of(CLOCK_BOOTTIME) - std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;  // VmHWM
}

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

std::unique_ptr<Context> make_context(const Options& o) {
  if (o.device == "cpu")
    return make_cpu_context(cli::with_environment(CpuOptions{.threads = static_cast<int>(o.threads)}));
  return make_cuda_context(cli::with_environment(
      {.deterministic = o.deterministic, .tf32 = o.precision == "tf32", .plan_file = o.plan_file}));
}

DType dtype_of(const std::string& precision) {
  return precision == "bf16" ? DType::bf16 : precision == "fp16" ? DType::f16 : DType::f32;
}

class Bench {
 public:
  explicit Bench(const Options& o)
      : context_(make_context(o)),
        store_(*context_),
        model_(make_model(store_, o)),
        optimizer_((store_.allocate(1, compute_of(o)), store_),
                   {.update = {.rule = UpdateRule::momentum, .momentum = 0.9f}, .weight_decay = 1e-4f}),
        trainer_(store_, optimizer_, {.base = 0.01},
                 {.loss_scale = o.precision == "fp16" ? 128.0f : 1.0f, .cuda_graph = o.cuda_graph}),
        batch_(cli::make_synthetic_batch(*context_, o.batch, model_.image_size, o.classes)) {
    normalization_.dtype = dtype_of(o.precision);
    normalization_.channels = static_cast<int>(compute_of(o).image_channels);
  }

  // Steps are enqueued without synchronisation, as in training.
  std::vector<StepReport> run(int64_t steps) {
    constexpr uint64_t kAhead = 2;
    std::vector<StepReport> reports;
    const auto collect = [&](uint64_t leave) {
      for (const StepReport& report : trainer_.collect(leave)) reports.push_back(report);
    };
    for (int64_t i = 0; i < steps; ++i) {
      trainer_.enqueue([&](Tape& tape, int) {
        // 16-bit types need a conversion, and a GPU has another pixel layout.
        const bool as_it_is = context_->is_cpu() && normalization_.dtype == DType::f32;
        const Tensor images = as_it_is ? batch_.images : normalize_pixels(*context_, batch_.images, normalization_);
        return softmax_cross_entropy(tape, model_.forward(tape, tape.constant(images)), batch_.labels);
      });
      collect(kAhead);
    }
    collect(0);
    for (const StepReport& report : reports) DT_CHECK(report.finite, "the loss is not finite in step ", report.step);
    return reports;
  }

  int threads() const { return context_->threads(); }
  const models::Classifier& model() const { return model_; }
  MemoryStats memory() const { return context_->memory_stats(); }

 private:
  static models::Classifier make_model(ParameterStore& store, const Options& o) {
    return models::make_classifier(store, models::classifier_info(o.model, "imagenet"),
                                   {.classes = o.classes, .image_size = o.size});
  }
  static ComputeOptions compute_of(const Options& o) {
    const DType dtype = dtype_of(o.precision);
    return {dtype, o.device == "cpu" ? 3 : static_cast<int>(16 / size_of(dtype))};
  }

  std::unique_ptr<Context> context_;
  ParameterStore store_;
  models::Classifier model_;
  Optimizer optimizer_;
  Trainer trainer_;
  cli::SyntheticBatch batch_;
  PixelNormalization normalization_;
};

// Host clocks: times of one step.
struct HostTimes {
  double wall, cpu;
};

JsonObject measure_peaks(const Options& o) {
  const auto context = make_context(o);
  return {{"isa", name_of(context->isa())},
          {"threads", context->threads()},
          {"peak_gflops", 1e-9 * measure_peak_flops(*context)},
          {"peak_gb_per_s", 1e-9 * measure_peak_bandwidth(*context)}};
}

JsonObject measure(const Options& o) {
  Bench bench(o);
  const double start = process_age(), start_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  bench.run(std::min<int64_t>(o.warmup, 1));
  const double first = process_age();
  bench.run(std::max<int64_t>(o.warmup - 1, 0));
  const int64_t faults = page_faults();
  // Short runs give enough samples for a median; on a GPU they must be long enough for the host to run ahead.
  const int together = o.device == "cpu" ? 1 : 10;
  std::vector<double> walls, cpus;
  std::vector<StepReport> steps;
  while (static_cast<int64_t>(steps.size()) < o.steps) {
    const double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (const StepReport& report : bench.run(together)) steps.push_back(report);
    walls.push_back((seconds_of(CLOCK_MONOTONIC) - wall) / together);
    cpus.push_back((seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / together);
  }
  const int64_t fresh_faults = page_faults() - faults;
  auto of = [&](double StepTimes::*part) {
    std::vector<double> values;
    for (const StepReport& step : steps) values.push_back(step.times.*part);
    return median(values);
  };
  const auto batch = static_cast<double>(o.batch);
  JsonObject report = {{"model", o.model},
                       {"device", o.device},
                       {"precision", o.precision},
                       {"batch", o.batch},
                       {"size", bench.model().image_size},
                       {"threads", bench.threads()},
                       {"images_per_sec", batch / median(walls)},
                       {"images_per_cpu_sec", batch / median(cpus)},
                       {"forward_ms", 1e3 * of(&StepTimes::forward)},
                       {"backward_ms", 1e3 * of(&StepTimes::backward)},
                       {"update_ms", 1e3 * of(&StepTimes::update)},
                       {"start_to_first_step_s", start},
                       {"start_to_end_of_first_step_s", first},
                       {"start_to_first_step_cpu_s", start_cpu},
                       {"peak_mib", peak_bytes() >> 20},
                       {"pool_peak_mib", bench.memory().peak_in_use >> 20},
                       {"page_faults_per_step", static_cast<double>(fresh_faults) / static_cast<double>(steps.size())}};
  if (o.device != "cpu") {
    report.emplace_back("cuda_graph", o.cuda_graph);
    report.emplace_back("peak_device_mib", bench.memory().peak_in_use >> 20);
    report.emplace_back("peak_device_reserved_mib", bench.memory().reserved >> 20);
  }
  return report;
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  Options options;
  cli::FlagSet flags("step_bench", "[flags]",
                     "Times the training step of a classifier on synthetic images; medians over the steps.");
  flags.add("model", options.model, "name of an ImageNet classifier");
  flags.add_choice("device", options.device, {"cpu", "gpu"}, "device");
  flags.add_choice("precision", options.precision, {"fp32", "tf32", "bf16", "fp16"},
                   "precision; tf32 and fp16 need a GPU");
  flags.add("cuda_graph", options.cuda_graph, "capture the step once as a CUDA graph and launch it");
  flags.add("deterministic", options.deterministic, "bit-reproducible results");
  flags.add("plan_file", options.plan_file, "file that keeps the measured convolution algorithms");
  flags.add("batch", options.batch, "images per step", kPositiveBatch);
  flags.add("size", options.size, "image height and width in pixels; 0: the model's default", cli::kImageSize);
  flags.add("classes", options.classes, "number of classes", {1, cli::kClasses.high});
  flags.add("threads", options.threads, "CPU threads; 0: OpenMP's default", cli::kThreads);
  flags.add("steps", options.steps, "timed steps", cli::kPositiveCount);
  flags.add("warmup", options.warmup, "warm-up steps", cli::kCount);
  flags.add("peaks", options.peaks, "print peak FLOP/s and bandwidth of the CPU instead");
  return run_program(flags, argc, argv, [&] { print_json(options.peaks ? measure_peaks(options) : measure(options)); });
}
