// The training step of a classifier on synthetic data: images per second, where the time goes, the peak of memory and
// the time from the start of the process to the beginning of the first step. One line of JSON.
//   step_bench --model resnet50_v1.5 --batch 16 --size 224 --threads 2
// benchmarks/peers/resnet50_peer.py does the same in PyTorch.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "libdtrain/core/rng.h"
#include "libdtrain/train/trainer.h"
#include "models/classifier.h"

namespace dtrain {
namespace {

struct Options {
  std::string model = "resnet50_v1.5";
  int64_t batch = 16, size = 0, classes = 1000;
  int threads = 0, steps = 5, warmup = 1;
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Wall time since the kernel started this process, in its ticks of 10 ms.
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

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Seconds of one step.
struct StepTimes {
  double wall, cpu, forward, backward, update;
};

class Bench {
 public:
  explicit Bench(const Options& o)
      : context_(make_cpu_context({.threads = o.threads})),
        store_(*context_),
        model_(make_model(store_, o)),
        optimizer_((store_.allocate(1), store_),
                   {.update = {.rule = UpdateRule::momentum, .momentum = 0.9f}, .weight_decay = 1e-4f}),
        trainer_(store_, optimizer_, {.base = 0.01}),
        images_(context_->empty({o.batch, model_.image_size, model_.image_size, 3})),
        labels_(context_->empty({o.batch}, DType::i32)) {
    RandomStream random(1, 0);
    for (float& pixel : images_.span<float>()) pixel = random.uniform(-1, 1);
    for (int32_t& label : labels_.span<int32_t>())
      label = static_cast<int32_t>(random.below(static_cast<uint64_t>(o.classes)));
  }

  StepTimes step() {
    const double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    double forward = 0, backward = 0;
    const StepReport report = trainer_.step([&](Tape& tape, int) {
      // The last gradient that is ready ends the backward pass.
      tape.on_ready([&](const Parameter&) { backward = seconds_of(CLOCK_MONOTONIC); });
      const Classification result = softmax_cross_entropy(tape, model_.forward(tape, tape.constant(images_)), labels_);
      forward = seconds_of(CLOCK_MONOTONIC);
      return result;
    });
    DT_CHECK(report.finite, "the loss is not finite in step ", report.step);
    const double end = seconds_of(CLOCK_MONOTONIC);
    return {end - wall, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, forward - wall, backward - forward, end - backward};
  }

  int threads() const { return context_->threads(); }
  const models::Classifier& model() const { return model_; }
  MemoryStats memory() const { return context_->memory_stats(); }

 private:
  static models::Classifier make_model(ParameterStore& store, const Options& o) {
    return models::make_classifier(store, models::classifier_info(o.model, "imagenet"),
                                   {.classes = o.classes, .image_size = o.size});
  }

  std::unique_ptr<Context> context_;
  ParameterStore store_;
  models::Classifier model_;
  Optimizer optimizer_;
  Trainer trainer_;
  Tensor images_, labels_;
};

nlohmann::ordered_json measure(const Options& o) {
  Bench bench(o);
  const double start = process_age(), start_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < o.warmup; ++i) bench.step();
  const int64_t faults = page_faults();
  std::vector<StepTimes> steps;
  for (int i = 0; i < o.steps; ++i) steps.push_back(bench.step());
  const int64_t fresh_faults = page_faults() - faults;
  auto of = [&](double StepTimes::*part) {
    std::vector<double> values;
    for (const StepTimes& step : steps) values.push_back(step.*part);
    return median(values);
  };
  const auto batch = static_cast<double>(o.batch);
  return {{"model", o.model},
          {"batch", o.batch},
          {"size", bench.model().image_size},
          {"threads", bench.threads()},
          {"images_per_sec", batch / of(&StepTimes::wall)},
          {"images_per_cpu_sec", batch / of(&StepTimes::cpu)},
          {"forward_ms", 1e3 * of(&StepTimes::forward)},
          {"backward_ms", 1e3 * of(&StepTimes::backward)},
          {"update_ms", 1e3 * of(&StepTimes::update)},
          {"start_to_first_step_s", start},
          {"start_to_first_step_cpu_s", start_cpu},
          {"peak_mib", peak_bytes() >> 20},
          {"pool_peak_mib", bench.memory().peak_in_use >> 20},
          {"page_faults_per_step", static_cast<double>(fresh_faults) / std::max(o.steps, 1)}};
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  dtrain::Options options;
  CLI::App app("Times the training step of a classifier on synthetic data; medians over the steps.");
  app.add_option("--model", options.model, "name of an ImageNet classifier")->capture_default_str();
  app.add_option("--batch", options.batch, "images per step")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--size", options.size, "pixels of an image's edge; 0: the model's own")->capture_default_str();
  app.add_option("--classes", options.classes, "classes")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", options.threads, "0: OpenMP's choice")->capture_default_str();
  app.add_option("--steps", options.steps, "timed steps")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--warmup", options.warmup, "steps before them")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << dtrain::measure(options).dump() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "step_bench: " << error.what() << "\n";
    return 1;
  }
}
