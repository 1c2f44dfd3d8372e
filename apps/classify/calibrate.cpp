#include "apps/classify/calibrate.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/loaded_classifier.h"
#include "apps/cli/messages.h"
#include "dtrain/data/loader.h"
#include "dtrain/models/conventions.h"
#include "dtrain/train/calibration_file.h"

namespace dtrain::classify {
namespace {

constexpr char kAbout[] =
    "Calibrates a classifier for int8 inference on a CPU: runs it in fp32 on images, records the activation ranges, "
    "and tries three rules for the quantisation ranges. The rule with the smallest error of the logits against fp32 is "
    "written to --calibration. The accuracies of fp32 and int8 are measured on the validation data.\n"
    "Exit codes: 0 done, 1 usage, 2 data that cannot be read, 3 NaN or Inf, 5 weights that cannot be read or do not "
    "fit, 6 memory or disk.";

struct CalibrateOptions {
  cli::ClassifierFlags model;
  std::string data_dir, split = "train";
  int64_t images = 512, eval_images = 0, label_offset = 0, threads = 0, batch = 8;
};

struct Accuracy {
  int64_t top1 = 0, top5 = 0, images = 0;
  double share(int64_t hits) const {
    return images > 0 ? 100.0 * static_cast<double>(hits) / static_cast<double>(images) : 0;
  }
};

class CalibrationRun {
 public:
  CalibrationRun(const CalibrateOptions& options, const cli::FlagSet& set)
      : options_(options), loaded_(options.model, set, cli::inference_machine("cpu", options.threads)) {}

  void run(const std::string& file);

 private:
  using Rows = std::vector<float>;

  // Calls visit(images, labels) for batches of the first `count` images of a split, preprocessed as in evaluation; 0:
  // all.
  template <class Visit>
  int64_t for_each_batch(bool training, int64_t count, const Visit& visit);
  Rows logits(PreparedWeights& prepared, const Tensor& images, Calibrator* calibrator = nullptr);
  Accuracy accuracy(PreparedWeights& prepared);
  NamedLayers find_layers(Calibration& calibration);
  std::unique_ptr<PreparedWeights> quantized(const NamedLayers& layers) const {
    auto prepared = std::make_unique<PreparedWeights>(loaded_.store());
    prepared->quantize(layers_of(layers, loaded_.store()));
    return prepared;
  }

  const CalibrateOptions& options_;
  cli::LoadedClassifier loaded_;
};

template <class Visit>
int64_t CalibrationRun::for_each_batch(bool training, int64_t count, const Visit& visit) {
  const auto dataset = data::open_split(loaded_.pixels(), {.directory = options_.data_dir,
                                                           .training = training,
                                                           .augments = false,
                                                           .classes = loaded_.model().classes,
                                                           .label_offset = options_.label_offset});
  data::Loader loader(dataset, {.batch = options_.batch, .training = false});
  int64_t seen = 0;
  for (const data::Batch* batch = loader.next(); batch && (count == 0 || seen < count); batch = loader.next()) {
    const int64_t rows = count == 0 ? batch->valid : std::min(batch->valid, count - seen);
    visit(normalize_pixels(loaded_.context(), (*batch)["images"].slice(0, rows), loaded_.normalization()),
          (*batch)["labels"].slice(0, rows));
    seen += rows;
  }
  return seen;
}

CalibrationRun::Rows CalibrationRun::logits(PreparedWeights& prepared, const Tensor& images, Calibrator* calibrator) {
  Tape tape(loaded_.context(), prepared);
  if (calibrator) calibrator->observe(tape);
  const Tensor y = loaded_.model().forward(tape, tape.constant(images)).value;
  Rows values(static_cast<size_t>(y.count()));
  loaded_.context().download(y, values.data(), "calibration");
  return values;
}

Accuracy CalibrationRun::accuracy(PreparedWeights& prepared) {
  Accuracy accuracy;
  const auto classes = static_cast<size_t>(loaded_.model().classes);
  accuracy.images = for_each_batch(false, options_.eval_images, [&](const Tensor& images, const Tensor& labels) {
    const Rows all = logits(prepared, images);
    for (size_t row = 0; row < static_cast<size_t>(labels.count()); ++row) {
      const float* const own = all.data() + row * classes;
      const auto label = static_cast<size_t>(labels.data<int32_t>()[row]);
      const auto above = std::count_if(own, own + classes, [&](const float& other) {
        return other > own[label] || (other == own[label] && static_cast<size_t>(&other - own) < label);
      });
      accuracy.top1 += above < 1;
      accuracy.top5 += above < 5;
    }
  });
  return accuracy;
}

// Ranges of the rule with the smallest logit error against fp32.
NamedLayers CalibrationRun::find_layers(Calibration& calibration) {
  Calibrator calibrator(loaded_.store());
  Rows expected;
  const bool training = options_.split == "train";
  calibration.images =
      static_cast<uint64_t>(for_each_batch(training, options_.images, [&](const Tensor& images, const Tensor&) {
        const Rows own = logits(loaded_.prepared(), images, &calibrator);
        expected.insert(expected.end(), own.begin(), own.end());
      }));
  NamedLayers best;
  double least = std::numeric_limits<double>::infinity();
  for (const RangeRule rule : kRangeRules) {
    const NamedLayers layers = calibrator.layers(rule);
    const auto prepared = quantized(layers);
    double squares = 0, of = 0;
    size_t at = 0;
    for_each_batch(training, options_.images, [&](const Tensor& images, const Tensor&) {
      for (const float value : logits(*prepared, images)) {
        const double y = expected[at++], difference = value - y;
        squares += difference * difference;
        of += y * y;
      }
    });
    const double off = of > 0 ? squares / of : 0;
    std::cout << fmt::format("ranges by {}: relative error of logits {:.4f}\n", name_of(rule), std::sqrt(off));
    if (!(off < least)) continue;
    least = off;
    best = layers;
    calibration.ranges = name_of(rule);
  }
  if (best.empty()) throw Error(Fault::numeric, "calibrate: the logits in int8 are not finite");
  return best;
}

void CalibrationRun::run(const std::string& file) {
  Calibration calibration{.identity = options_.model.calibrated_for(), .weights = weights_digest(loaded_.store())};
  calibration.layers = find_layers(calibration);
  save_calibration(calibration, file);
  std::cout << fmt::format("{}: {}, {} layers in int8, ranges by {} of {} images\n", cli::escaped(file),
                           loaded_.model().name, calibration.layers.size(), calibration.ranges, calibration.images)
            << std::flush;
  const auto prepared = quantized(calibration.layers);
  const Accuracy floats = accuracy(loaded_.prepared()), bytes = accuracy(*prepared);
  for (const auto& [name, found] : {std::pair("fp32", &floats), std::pair("int8", &bytes)})
    std::cout << fmt::format("{}: top-1 {:.2f} %, top-5 {:.2f} % of {} images\n", name, found->share(found->top1),
                             found->share(found->top5), found->images);
  std::cout << fmt::format("loss: top-1 {:.2f}, top-5 {:.2f} points\n",
                           floats.share(floats.top1) - bytes.share(bytes.top1),
                           floats.share(floats.top5) - bytes.share(bytes.top5))
            << std::flush;
}

}  // namespace

int run_calibrate(const std::vector<std::string>& argv) {
  CalibrateOptions options;
  cli::FlagSet flags("dtrain-classify calibrate", "--weights F --data_dir D --calibration FILE [flags]", kAbout);
  options.model.declare(flags);
  flags.group("Calibration");
  flags.add("calibration", options.model.calibration, "file to write");
  flags.add("data_dir", options.data_dir, "folder, or s3://BUCKET/PREFIX, of TFRecord files train-* and validation-*")
      .may_be_remote();
  flags.add_choice("calibration_split", options.split, {"train", "validation"}, "split to calibrate on");
  flags.add("num_images", options.images, "number of images to calibrate on, from the first on", cli::kPositiveCount);
  flags.add("num_eval_images", options.eval_images, "number of validation images to measure the accuracy on; 0: all",
            cli::kCount);
  flags.add("label_offset", options.label_offset, "added to the labels of the files", {-1000, 1000});
  flags.add("batch_size", options.batch, "images per forward pass", cli::kPositiveCount);
  flags.add("num_intra_threads", options.threads, "compute threads; 0: OMP_NUM_THREADS or one per core", cli::kThreads);
  if (!cli::read_flags(flags, argv)) return 0;
  DT_CHECK(!options.model.weights.empty() && !options.data_dir.empty() && !options.model.calibration.empty(),
           "expected --weights, --data_dir and --calibration; see --help");
  options.model.take_recorded(flags);
  const cli::RecordedClassifier& recorded = options.model.recorded;
  DT_CHECK(recorded.loss != "bce", options.model.weights,
           ": trained with --loss=bce; calibration measures the top-1 accuracy of images with one label");
  if (!recorded.label_offset.empty())
    recorded.imply(flags, {"label_offset", cli::kLabelOffsetKey, recorded.label_offset});
  options.model.check();
  const std::string file = std::exchange(options.model.calibration, "");
  CalibrationRun(options, flags).run(file);
  return 0;
}

}  // namespace dtrain::classify
