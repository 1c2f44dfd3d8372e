// dtrain-mask-rcnn train.
#include <memory>

#include <fmt/format.h>

#include "apps/cli/agreed_stop.h"
#include "apps/cli/input_notices.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/cli/ranks.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/mask_rcnn/training_job.h"
#include "apps/mask_rcnn/training_outputs.h"
#include "apps/observers/model_details.h"
#include "dtrain/core/error.h"
#include "libdtrain/train/agreement.h"

namespace dtrain::mask_rcnn {
namespace {

// Describes the length of the run relative to its data, and its origin.
std::string length_line(const TrainingJob& job) {
  const TrainingSettings& settings = job.settings;
  const uint64_t images = job.datasets.training->size();
  const double passes =
      static_cast<double>(job.total_steps) * static_cast<double>(settings.global_batch()) / static_cast<double>(images);
  std::string line =
      fmt::format("data: {} training images, {:.4g} epochs in {} steps", images, passes, job.total_steps);
  const cli::RunFlags& flags = settings.flags.run;
  if (!settings.rate.in_epochs && !flags.num_epochs && !flags.num_batches && !flags.max_train_steps)
    line += fmt::format(
        "; TRAIN.LR_SCHEDULE, by default the preset's ({}), sets the number of steps independently of the data; "
        "--num_epochs sets epochs",
        settings.preset);
  return line;
}

void print_header(cli::Log& log, const TrainingJob& job) {
  if (!job.settings.machine.gpu) log.line("Computing:   " + cli::describe(*job.model.context));
  if (!job.weights_summary.empty()) log.line("Weights:     " + job.weights_summary);
  for (const std::string& notice : job.notices) log.notice(notice);
  for (const std::string& line : job.schedule.lines()) log.line(line);
  log.line(length_line(job));
}

int run_training(TrainingJob& job, cli::Log& log) {
  print_header(log, job);
  Optimizer optimizer(job.model.store, optimizer_options(job.settings.rate));
  Trainer trainer(job.model.store, optimizer, job.schedule.learning_rate(), job.trainer_options());
  TrainingOutputs outputs(job, log);
  detection::DetectionTask task(job.model, job.group, job.task_options());
  const auto pictures = [&] { return task.pictures(); };
  outputs.show(observers::details_of({job.settings.flags.summaries.summary_verbosity, pictures}, trainer));
  Run run(task, trainer, job.group, job.run_options(), outputs.observers(), cli::stop_requested);
  const Outcome outcome = run.train();
  const auto report = [&](const data::LoaderStats& stats) {
    cli::report_input(stats, job.settings.data.orientation, /*decodes_on_gpu=*/false, log);
  };
  report(cli::over_ranks(job.group, task.stats().value_or(data::LoaderStats())));
  if (outcome == Outcome::stopped) {
    report(task.evaluation_stats());
    log.notice(fmt::format("stopped on request at step {}; the same command resumes from there", run.step()));
    return cli::kStopped;
  }
  if (job.datasets.validation.empty()) return 0;
  run.evaluate();
  report(task.evaluation_stats());
  return 0;
}

// Throws Error unless settings and data are equal on all ranks. Collective.
void check_settings_and_data(Group& group, const TrainingSettings& settings, const Datasets& datasets) {
  RankSettings alike = {{"the training data set", datasets.training->contents()}};
  for (const detection::ValidationSplit& split : datasets.validation)
    alike.emplace_back("the validation data set", split.images->contents());
  for (const auto& [key, value] : settings.described()) alike.emplace_back(key, value);
  check_equal(group, alike, "settings and data sets");
}

// The run's files include the final error line, which is printed last.
int run_logged(const TrainingSettings& settings, const Datasets& datasets, Group& group,
               const std::vector<std::string>& notices) {
  cli::LineFile log_file;
  cli::Log log(cli::patient_stdout(), cli::patient_stderr(), settings.ranks.is_chief());
  if (!settings.flags.checkpoints.train_dir.empty() && settings.ranks.is_chief()) log.copy_to(log_file);
  for (const std::string& notice : notices) log.notice(notice);
  try {
    check_settings_and_data(group, settings, datasets);
    TrainingJob job(settings, datasets, group);
    return run_training(job, log);
  } catch (const std::exception& error) {
    log.copy(fmt::format("error: {}", error.what()));
    throw;
  }
}

}  // namespace

int train(const Arguments& argv) {
  TrainFlags values;
  cli::FlagSet flags(
      argv.front(), "--data_dir DIR [flags] [--config KEY=VALUE...]",
      "Trains a detector on a data set in COCO format. --config takes TensorPack's and AWS Mask R-CNN's keys; "
      "--help=KEYS lists them. With --train_dir the same command resumes from the newest checkpoint.");
  values.declare(flags);
  const auto positional = read_arguments(flags, values.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  values.check(flags);
  cli::catch_stop_signals();
  const std::unique_ptr<Group> group = cli::open_group(values.ranks.job.limits(), values.ranks.job.expect_ranks);
  cli::check_flags(*group, flags);
  if (!values.checkpoints.open_remote(*group)) return cli::kStopped;
  values.resume_at_starting_epoch();
  std::vector<std::string> notices;
  TrainingSettings settings = make_settings(values, flags, *group, notices);
  Datasets datasets;
  if (!cli::open_unless_stopped(*group, [&] { datasets = open_datasets(settings, notices); })) {
    cli::print_message("note", "stopped on request while opening the data");
    return cli::kStopped;
  }
  const int code = run_logged(settings, datasets, *group, notices);
  values.checkpoints.close_remote(*group);
  cli::ignore_stop_signals();
  group->finish();
  return code;
}

}  // namespace dtrain::mask_rcnn
