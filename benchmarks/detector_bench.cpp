// The training step and the inference of Mask R-CNN (ResNet-50 and FPN, torchvision's conventions): seconds of a step,
// where they go, and the peak of memory. One line of JSON.
//   benchmarks/peers/mask_rcnn_peer.py --folder FOLDER --make --height 320 --width 480 --batch 2
//   detector_bench --folder FOLDER --mode train --threads 2
// benchmarks/peers/mask_rcnn_peer.py does the same with torchvision, on the same weights and images.
#include <sys/resource.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "libdtrain/train/metrics.h"
#include "libdtrain/train/trainer.h"
#include "libdtrain/train/weights.h"
#include "models/detection/detector.h"
#include "models/detection/presets.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string folder, mode = "train";
  int threads = 0, steps = 5, warmup = 1;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Processor milliseconds by part of the model, those of its backward work apart.
class PartTimes {
 public:
  void enter(std::string part) {
    const double now = processor_seconds();
    if (!part_.empty()) milliseconds_[part_] += 1e3 * (now - since_);
    part_ = std::move(part);
    since_ = now;
  }
  std::map<std::string, double> take() { return std::exchange(milliseconds_, {}); }

 private:
  std::string part_;
  double since_ = 0;
  std::map<std::string, double> milliseconds_;
};

struct Sample {
  Tensor images;
  models::DetectionTruth truth;
};

Sample read_sample(Context& context, const std::string& path) {
  const SafetensorsFile file(path);
  const auto read = [&](const char* name) { return read_tensor(context, file, name); };
  const Tensor sizes = read("sizes");
  return {read("images"),
          {sizes, read("counts"), read("boxes"), read("classes"), {read("run_ends"), read("run_begins"), sizes}}};
}

class Bench {
 public:
  explicit Bench(const Options& o)
      : context_(make_cpu_context({.threads = o.threads})),
        store_(*context_),
        detector_(store_, options_),
        train_(o.mode == "train") {
    store_.allocate(0, {.gradients = train_});
    models::freeze(store_, options_);
    if (const WeightReport report = load_weights(store_, o.folder + "/weights.safetensors"); !report.complete())
      throw Error(Fault::data, report.summary());
    if (train_) {
      optimizer_.emplace(store_, OptimizerOptions{.update = {.rule = UpdateRule::momentum, .momentum = 0.9f}});
      trainer_.emplace(store_, *optimizer_, Schedule{.base = 1e-6}, TrainerOptions{});
    }
    sample_ = read_sample(*context_, o.folder + "/batch.safetensors");
    canvas_ = detector_.canvas(*context_, sample_.images.dim(1), sample_.images.dim(2));
  }

  // Seconds of one step.
  double step() {
    const Clock::time_point begin = Clock::now();
    if (train_)
      train();
    else
      infer();
    parts_.enter("");
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::map<std::string, double> take_parts() { return parts_.take(); }
  int64_t batch() const { return sample_.images.dim(0); }
  int threads() const { return context_->threads(); }
  int64_t detections() const { return detections_; }
  float loss() const { return loss_; }

 private:
  void train() {
    trainer_->enqueue([&](Tape& tape, int) {
      tape.on_part([this](const char* part) { parts_.enter(part); });
      Loss loss = detector_.loss(tape, canvas_, tape.constant(sample_.images), sample_.truth);
      tape.on_part([this](const char* part) { parts_.enter(std::string(part) + ", backward"); });
      return loss;
    });
    const StepReport report = trainer_->collect(0).back();
    DT_CHECK(report.finite, "the loss is not finite in step ", report.step);
    loss_ = static_cast<float>(report.loss);
  }
  void infer() {
    Tape tape(*context_, Mode::eval);
    tape.on_part([this](const char* part) { parts_.enter(part); });
    const models::Detections found =
        detector_.detect(tape, canvas_, tape.constant(sample_.images), sample_.truth.sizes);
    detections_ = found.masks ? found.masks.dim(0) : 0;
  }

  models::DetectorOptions options_ = models::detector_preset("torchvision").options;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  models::Detector detector_;
  bool train_;
  std::optional<Optimizer> optimizer_;
  std::optional<Trainer> trainer_;
  Sample sample_;
  models::Canvas canvas_;
  PartTimes parts_;
  int64_t detections_ = 0;
  float loss_ = 0;
};

nlohmann::ordered_json measure(const Options& o) {
  Bench bench(o);
  for (int i = 0; i < o.warmup; ++i) bench.step();
  bench.take_parts();
  std::vector<double> seconds, processor;
  std::map<std::string, std::vector<double>> parts;
  const int64_t faults = page_faults();
  for (int i = 0; i < o.steps; ++i) {
    const double begin = processor_seconds();
    seconds.push_back(bench.step());
    processor.push_back(processor_seconds() - begin);
    for (const auto& [part, milliseconds] : bench.take_parts()) parts[part].push_back(milliseconds);
  }
  const int64_t fresh_faults = page_faults() - faults;
  nlohmann::ordered_json times;
  for (const auto& [part, values] : parts) times[part] = median(values);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {{"mode", o.mode},
          {"batch", bench.batch()},
          {"threads", bench.threads()},
          {"seconds", median(seconds)},
          {"processor_seconds", median(processor)},
          {"loss", bench.loss()},
          {"detections", bench.detections()},
          {"peak_mib", usage.ru_maxrss >> 10},
          {"page_faults_per_step", fresh_faults / o.steps},
          {"parts_processor_ms", times}};
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  dtrain::Options options;
  CLI::App app("Times a step of Mask R-CNN; medians over the steps.");
  app.add_option("--folder", options.folder, "with weights.safetensors and batch.safetensors")->required();
  app.add_option("--mode", options.mode, "what is timed")->check(CLI::IsMember({"train", "infer"}));
  app.add_option("--threads", options.threads, "0: OpenMP's choice")->capture_default_str();
  app.add_option("--steps", options.steps, "timed steps")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--warmup", options.warmup, "steps before them")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << dtrain::measure(options).dump() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "detector_bench: " << error.what() << "\n";
    return 1;
  }
}
