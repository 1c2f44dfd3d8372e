// Training step and inference of Mask R-CNN (ResNet-50, FPN, torchvision's conventions): seconds per step, breakdown by
// part, and peak memory. One line of JSON.
//   benchmarks/peers/mask_rcnn_peer.py --folder FOLDER --make --height 320 --width 480 --batch 2
//   detector_bench --folder FOLDER --mode train --threads 2
//   detector_bench --folder FOLDER --mode train --device gpu --precision bf16
// Parts of a CPU step are in CPU time. Parts of a GPU step come from eager steps that synchronise after each part; the
// step time itself is measured with CUDA graph launches. Peer with torchvision, the same weights and images:
// benchmarks/peers/mask_rcnn_peer.py.
#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <map>

#include "apps/cli/environment.h"
#include "benchmarks/json.h"
#include "benchmarks/program.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/models/detection/presets.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/metrics.h"
#include "dtrain/train/trainer.h"
#include "dtrain/train/weights.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string folder, mode = "train", device = "cpu", precision = "fp32";
  int64_t threads = 0, steps = 5, warmup = 1;
};

DType dtype_of(const std::string& precision) {
  return precision == "bf16" ? DType::bf16 : precision == "fp16" ? DType::f16 : DType::f32;
}

std::unique_ptr<Context> make_context(const Options& o) {
  if (o.device == "cpu") return make_cpu_context({.threads = static_cast<int>(o.threads)});
  return make_cuda_context(cli::with_environment({.tf32 = o.precision == "tf32"}));
}

double wall_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

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

// Milliseconds by part of the model, with backward listed separately.
class PartTimes {
 public:
  explicit PartTimes(Context& context) : context_(context) {}

  void enter(std::string part) {
    context_.synchronize("benchmark");
    const double now = context_.is_cpu() ? processor_seconds() : wall_seconds();
    if (!part_.empty()) milliseconds_[part_] += 1e3 * (now - since_);
    part_ = std::move(part);
    since_ = now;
  }
  std::map<std::string, double> take() { return std::exchange(milliseconds_, {}); }

 private:
  Context& context_;
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
      : context_(make_context(o)),
        store_(*context_),
        detector_(store_, options_),
        train_(o.mode == "train"),
        dtype_(dtype_of(o.precision)),
        parts_(*context_) {
    const int channels = context_->is_cpu() ? 3 : static_cast<int>(16 / size_of(dtype_));
    store_.allocate(0, {.dtype = dtype_, .image_channels = channels, .gradients = train_});
    models::freeze(store_, options_);
    if (const WeightReport report = load_weights(store_, o.folder + "/weights.safetensors"); !report.complete())
      throw Error(Fault::data, report.summary());
    if (train_)
      optimizer_.emplace(store_, OptimizerOptions{.update = {.rule = UpdateRule::momentum, .momentum = 0.9f}});
    recorded_ = make_trainer(true);
    eager_ = make_trainer(false);
    sample_ = read_sample(*context_, o.folder + "/batch.safetensors");
    canvas_ = detector_.canvas(*context_, sample_.images.dim(1), sample_.images.dim(2));
  }

  // Seconds of a step. Times its parts on a CPU only, where timing is free.
  double step() {
    const double begin = wall_seconds();
    run(recorded_, context_->is_cpu());
    context_->synchronize("benchmark");
    return wall_seconds() - begin;
  }
  // On a GPU it runs an additional eager step.
  std::map<std::string, double> parts_of_step() {
    if (!context_->is_cpu()) run(eager_, true);
    return parts_.take();
  }
  int64_t batch() const { return sample_.images.dim(0); }
  Context& context() { return *context_; }
  int64_t detections() const { return detections_; }
  double loss() const { return loss_; }

 private:
  std::unique_ptr<Trainer> make_trainer(bool cuda_graph) {
    if (!train_) return nullptr;
    return std::make_unique<Trainer>(
        store_, *optimizer_, Schedule{.base = 1e-6},
        TrainerOptions{.loss_scale = dtype_ == DType::f16 ? 128.0f : 1.0f, .cuda_graph = cuda_graph});
  }
  Var pixels(Tape& tape) {
    const Tensor& images = sample_.images;
    if (context_->is_cpu()) return tape.constant(images);
    return tape.constant(normalize_pixels(*context_, images, {.dtype = dtype_, .channels = store_.image_channels()}));
  }
  void run(const std::unique_ptr<Trainer>& trainer, bool timed) {
    if (trainer)
      train(*trainer, timed);
    else
      infer(timed);
    if (timed) parts_.enter("");
  }
  void train(Trainer& trainer, bool timed) {
    trainer.enqueue([&](Tape& tape, int) {
      if (timed) tape.on_part([this](const char* part) { parts_.enter(part); });
      Loss loss = detector_.loss(tape, canvas_, pixels(tape), sample_.truth);
      if (timed) tape.on_part([this](const char* part) { parts_.enter(std::string(part) + ", backward"); });
      return loss;
    });
    const StepReport report = trainer.collect(0).back();
    DT_CHECK(report.finite, "the loss is not finite in step ", report.step);
    loss_ = report.loss;
  }
  void infer(bool timed) {
    Tape tape(*context_, Mode::eval);
    if (timed) tape.on_part([this](const char* part) { parts_.enter(part); });
    const models::Detections found = detector_.detect(tape, canvas_, pixels(tape), sample_.truth.sizes);
    detections_ = found.masks ? found.masks.dim(0) : 0;
  }

  models::DetectorOptions options_ = models::detector_preset("torchvision").options;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  models::Detector detector_;
  bool train_;
  DType dtype_;
  std::optional<Optimizer> optimizer_;
  std::unique_ptr<Trainer> recorded_, eager_;
  Sample sample_;
  models::Canvas canvas_;
  PartTimes parts_;
  int64_t detections_ = 0;
  double loss_ = 0;
};

JsonObject measure(const Options& o) {
  Bench bench(o);
  for (int64_t i = 0; i < o.warmup; ++i) bench.step();
  bench.parts_of_step();
  std::vector<double> seconds, processor;
  std::map<std::string, std::vector<double>> parts;
  const int64_t faults = page_faults();
  for (int64_t i = 0; i < o.steps; ++i) {
    const double begin = processor_seconds();
    seconds.push_back(bench.step());
    processor.push_back(processor_seconds() - begin);
    for (const auto& [part, milliseconds] : bench.parts_of_step()) parts[part].push_back(milliseconds);
  }
  const int64_t fresh_faults = page_faults() - faults;
  std::map<std::string, double> times;
  for (const auto& [part, values] : parts) times[part] = median(values);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {{"mode", o.mode},
          {"device", o.device},
          {"precision", o.precision},
          {"batch", bench.batch()},
          {"threads", bench.context().threads()},
          {"seconds", median(seconds)},
          {"processor_seconds", median(processor)},
          {"loss", bench.loss()},
          {"detections", bench.detections()},
          {"peak_mib", usage.ru_maxrss >> 10},
          {"page_faults_per_step", fresh_faults / o.steps},
          {"pool_peak_mib", bench.context().memory_stats().peak_in_use >> 20},
          {"parts_ms", times}};
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  Options options;
  cli::FlagSet flags("detector_bench", "--folder FOLDER [flags]",
                     "Times a step of Mask R-CNN; medians over the steps.");
  flags.add("folder", options.folder, "folder with weights.safetensors and batch.safetensors");
  flags.add_choice("mode", options.mode, {"train", "infer"}, "training step or inference");
  flags.add_choice("device", options.device, {"cpu", "gpu"}, "device");
  flags.add_choice("precision", options.precision, {"fp32", "tf32", "bf16", "fp16"},
                   "precision; all but fp32 need a GPU");
  flags.add("threads", options.threads, "CPU threads; 0: OpenMP's default", cli::kThreads);
  flags.add("steps", options.steps, "timed steps", cli::kPositiveCount);
  flags.add("warmup", options.warmup, "warm-up steps", cli::kCount);
  return run_program(flags, argc, argv, [&] {
    require_flags(flags, {"folder"});
    print_json(measure(options));
  });
}
