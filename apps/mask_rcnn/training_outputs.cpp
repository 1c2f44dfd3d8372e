#include "apps/mask_rcnn/training_outputs.h"

#include "apps/mask_rcnn/datasets.h"

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

// Displayed steps are in the file too; their number is small.
observers::EventFilesOptions event_options(const TrainingJob& job, const std::string& host) {
  return {.file = {.folder = job.flags.checkpoints.train_dir, .host = host, .most_pending = 1},
          .every = static_cast<uint64_t>(job.flags.summaries.save_summaries_steps),
          .details_every = job.details_every(),
          .tags = kTags};
}

observers::FigureOptions figure_options(const TrainingJob& job) {
  return {.speed = {.samples_per_step = static_cast<double>(job.global_batch())},
          .sums = job.ranks.size > 1,
          .gpu = job.machine.gpu};
}

}  // namespace

TrainingOutputs::TrainingOutputs(const TrainingJob& job, const std::string& host, cli::Log& log)
    : log_(log),
      job_(job),
      images_(static_cast<double>(job.global_batch())),
      period_(static_cast<uint64_t>(job.settings.epoch_steps(job.global_batch()))) {
  if (!job.ranks.is_chief()) return;
  const auto notice = [&log](const std::string& text) { log.notice(text); };
  if (const std::string& folder = job.flags.checkpoints.train_dir; !folder.empty()) {
    log.copy_to(log_file_);
    log_opener_.emplace(log, folder + "/log.log");
    if (job.flags.summaries.summary_verbosity > 0) events_.emplace(event_options(job, host), notice);
    stats_.emplace(observers::StatsJsonOptions{.path = folder + "/stats.json", .period = period_, .tags = kTags},
                   notice);
  }
  if (!job.flags.display.metrics_file.empty())
    metrics_.emplace(job.flags.display.metrics_file, figure_options(job), notice);
  throughput_.emplace(observers::ThroughputOptions{.images = images_,
                                                   .period = period_,
                                                   .every = static_cast<uint64_t>(job.flags.throughput_log_freq),
                                                   .line = [&log](const std::string& text) { log.line(text); },
                                                   .put =
                                                       [this](uint64_t step, const std::vector<MetricValue>& scalars) {
                                                         if (events_) events_->put(step, scalars);
                                                         if (stats_) stats_->put(scalars);
                                                       }});
}

std::vector<Observer*> TrainingOutputs::observers(uint64_t steps, const Context& context) {
  std::vector<Observer*> all;
  const auto add = [&](auto& observer) {
    if (observer) all.push_back(&*observer);
  };
  lines_.emplace(log_, images_, steps, images_in(job_.validation));
  add(log_opener_);
  add(lines_);
  add(throughput_);  // before the observers that receive its measurements
  add(events_);
  add(stats_);
  add(metrics_);
  if (!job_.ranks.is_chief()) return all;
  observers::FigureOptions figures = figure_options(job_);
  figures.total_steps = steps;
  live_.emplace(job_.flags.display,
                observers::LiveViewOptions{
                    .program = "dtrain-mask-rcnn", .model = "mask_rcnn", .ranks = job_.ranks.size, .figures = figures},
                context, log_);
  std::ranges::copy(live_->all(), std::back_inserter(all));
  return all;
}

}  // namespace dtrain::mask_rcnn
