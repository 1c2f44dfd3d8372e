#include "apps/mask_rcnn/training_outputs.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "apps/cli/loader_lanes.h"
#include "apps/mask_rcnn/datasets.h"
#include "apps/observers/tensorpack_log.h"

namespace dtrain::mask_rcnn {
namespace {

// TensorPack's names.
const observers::ScalarTags kTags = {
    {"total_loss", "total_cost"},
    {"loss", ""},
    {"l2_loss", "wd_cost"},
    {"objectness_loss", "rpn_losses/label_loss"},
    {"rpn_box_loss", "rpn_losses/box_loss"},
    {"class_loss", "fastrcnn_losses/label_loss"},
    {"box_loss", "fastrcnn_losses/box_loss"},
    {"mask_loss", "maskrcnn_loss/maskrcnn_loss"},
};

// None if not requested. Displayed steps are in the file too; their number is small.
std::optional<observers::EventFilesOptions> event_options(const TrainingJob& job) {
  const TrainFlags& f = job.settings.flags;
  if (f.checkpoints.train_dir.empty() || f.summaries.summary_verbosity <= 0) return {};
  return observers::EventFilesOptions{.file = {.folder = f.checkpoints.train_dir,
                                               .host = job.group.places()[static_cast<size_t>(job.group.rank())].host,
                                               .most_pending = 1},
                                      .every = static_cast<uint64_t>(f.summaries.save_summaries_steps),
                                      .details_every = job.settings.details_every(),
                                      .tags = kTags};
}

uint64_t period_of(const TrainingJob& job) {
  return static_cast<uint64_t>(job.settings.epoch_steps(job.settings.global_batch()));
}

std::unique_ptr<Observer> log_of(const TrainingJob& job, cli::Log& log) {
  const auto images = static_cast<double>(job.settings.global_batch());
  if (job.settings.flags.prints_tensorpack_log())
    return std::make_unique<observers::TensorPackLog>(
        log, observers::TensorPackLogOptions{images, period_of(job), job.total_steps, !job.datasets.validation.empty(),
                                             kTags});
  return std::make_unique<TrainingLog>(log, images, job.total_steps, images_in(job.datasets.validation));
}

// Prints AWS Mask R-CNN's lines of throughput.
std::function<void(const std::string&)> throughput_line(const TrainingJob& job, cli::Log& log) {
  if (!job.settings.flags.prints_tensorpack_log()) return [&log](const std::string& text) { log.line(text); };
  return [&log](const std::string& text) { log.line(observers::tensorpack_line("performance.py:74", text)); };
}

}  // namespace

void TrainingOutputs::StartingEpoch::begun(const Begun& event) {
  const uint64_t first = (epoch_ - 1) * period_;
  if (event.step < first)
    throw Error(
        Fault::checkpoint,
        fmt::format("TRAIN.STARTING_EPOCH={}: expected a checkpoint of step {} or later in --train_dir or --load, "
                    "found {}",
                    epoch_, first, event.step > 0 ? fmt::format("one of step {}", event.step) : "none"));
}

TrainingOutputs::TrainingOutputs(TrainingJob& job, cli::Log& log)
    : starting_epoch_(job.settings.starting_epoch, period_of(job)), lines_(log_of(job, log)) {
  if (!job.is_chief()) return;
  const TrainingSettings& settings = job.settings;
  const auto images = static_cast<double>(settings.global_batch());
  const uint64_t period = period_of(job);
  if (const std::string& folder = settings.flags.checkpoints.train_dir; !folder.empty()) {
    log_opener_.emplace(log, folder + "/log.log");
    stats_.emplace(observers::StatsJsonOptions{.path = folder + "/stats.json", .period = period, .tags = kTags},
                   [&log](const std::string& text) { log.notice(text); });
  }
  telemetry_.emplace(settings.flags,
                     observers::TelemetryOptions{.program = "dtrain-mask-rcnn",
                                                 .model = "mask_rcnn",
                                                 .figures = {.speed = {.samples_per_step = images},
                                                             .sums = settings.ranks.size > 1,
                                                             .gpu = settings.machine.gpu},
                                                 .events = event_options(job),
                                                 .total_steps = job.total_steps,
                                                 .precision = settings.machine.precision},
                     *job.model.context, *job.communicator, log);
  throughput_.emplace(
      observers::ThroughputOptions{.images = images,
                                   .period = period,
                                   .every = static_cast<uint64_t>(settings.flags.throughput_log_freq),
                                   .line = throughput_line(job, log),
                                   .put = [this](uint64_t step, const std::vector<MetricValue>& scalars) {
                                     if (telemetry_->events() != nullptr) telemetry_->events()->put(step, scalars);
                                     if (stats_) stats_->put(scalars);
                                   }});
  job.datasets.report = cli::loader_lanes(telemetry_->span_listener());
}

std::vector<Observer*> TrainingOutputs::observers() {
  std::vector<Observer*> all{&starting_epoch_};
  if (log_opener_) all.push_back(&*log_opener_);
  all.push_back(lines_.get());
  if (throughput_) all.push_back(&*throughput_);  // before the observers that receive its measurements
  if (stats_) all.push_back(&*stats_);
  if (telemetry_) std::ranges::copy(telemetry_->all(), std::back_inserter(all));
  return all;
}

}  // namespace dtrain::mask_rcnn
