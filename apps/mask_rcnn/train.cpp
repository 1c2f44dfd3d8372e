// dtrain-mask-rcnn train.
#include <memory>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/input_notices.h"
#include "apps/cli/loader_lanes.h"
#include "apps/cli/log.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/cli/ranks.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/mask_rcnn/batch_pictures.h"
#include "apps/mask_rcnn/coco_score.h"
#include "apps/mask_rcnn/model.h"
#include "apps/mask_rcnn/training_job.h"
#include "apps/mask_rcnn/training_outputs.h"
#include "apps/mask_rcnn/training_schedule.h"
#include "apps/observers/model_details.h"
#include "apps/observers/tracing.h"
#include "libdtrain/core/error.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/run/evaluation.h"
#include "libdtrain/run/faults.h"
#include "libdtrain/train/agreement.h"

namespace dtrain::mask_rcnn {
namespace {

// Describes the length of the run relative to its data, and its origin.
std::string length_line(const TrainingJob& job, uint64_t steps) {
  const auto images = static_cast<double>(job.training->size());
  const double passes = static_cast<double>(steps) * static_cast<double>(job.global_batch()) / images;
  std::string line =
      fmt::format("data: {} training images, {:.4g} epochs in {} steps", job.training->size(), passes, steps);
  const cli::RunFlags& flags = job.flags.run;
  if (!job.settings.rate.in_epochs && !flags.num_epochs && !flags.num_batches && !flags.max_train_steps)
    line += fmt::format(
        "; TRAIN.LR_SCHEDULE, by default the preset's ({}), sets the number of steps independently of the data; "
        "--num_epochs sets epochs",
        job.settings.preset);
  return line;
}

// Null if not requested, and on ranks other than the chief.
std::unique_ptr<observers::Tracing> tracing_of(const TrainingJob& job, uint64_t steps, Context& context,
                                               Communicator& communicator, cli::Log& log) {
  if (!job.ranks.is_chief() || !job.flags.tracing.wanted()) return {};
  observers::TracingOptions options = observers::tracing_options(job.flags.tracing, job.machine.precision, log);
  options.process = fmt::format("dtrain-mask-rcnn, {}", communicator.group().name(job.ranks.rank));
  options.total_steps = steps;
  auto tracing = std::make_unique<observers::Tracing>(std::move(options), context);
  tracing->listen_to(communicator);
  return tracing;
}

int run_training(TrainingJob& job, Group& group, TrainingOutputs& outputs, cli::Log& log) {
  detection::TaskOptions options = task_options(job);
  RankSettings alike = {{"the training data set", options.training->contents()}};
  for (const detection::ValidationSplit& split : options.validation)
    alike.emplace_back("the validation data set", split.images->contents());
  for (const auto& [key, value] : job.settings.described()) alike.emplace_back(key, value);
  check_equal(group, alike, "settings and data sets");
  Model model(job.settings, job.machine, job.seed(), /*gradients=*/true, &group);
  if (!job.machine.gpu) log.line("Computing:   " + cli::describe(*model.context));
  if (const std::string& weights = job.settings.weights; !weights.empty())
    log.line("Weights:     " + model.load(weights, /*complete=*/false).summary());

  const char* fault = cli::environment()("DTRAIN_FAULT");
  Faults faults(fault == nullptr ? "" : fault, group.rank(), group.size());
  const auto communicator =
      faults.around(make_communicator(group, *model.context, job.shape.gradients), *model.context);
  const TrainingSchedule rate = make_schedule(job.settings, job.flags.run, job.training->size(), job.global_batch());
  const uint64_t steps = steps_of(rate, job.flags.run);
  for (const std::string& line : rate.lines()) log.line(line);
  log.line(length_line(job, steps));

  Optimizer optimizer(model.store, optimizer_options(job.settings.rate));
  Trainer trainer(model.store, optimizer, rate.schedule(), trainer_options(job, *communicator));
  std::vector<Observer*> observers = outputs.observers(steps, *model.context);
  const std::unique_ptr<observers::Tracing> tracing = tracing_of(job, steps, *model.context, *communicator, log);
  if (tracing) {
    options.report = cli::loader_lanes(tracing->span_listener());
    observers.push_back(tracing.get());
  }
  options.score = scorer(model.detector.options().masks, job.settings.area_of_box());
  options.draw = [&model, training = options.training](const detection::DeviceBatch& batch) {
    return batch_pictures(*model.context, batch, training->categories());
  };
  detection::DetectionTask task(model, group, std::move(options));
  const auto pictures = [&] { return task.pictures(); };
  outputs.show(observers::details_of({job.flags.summaries.summary_verbosity, pictures}, trainer));
  Run run(task, trainer, group, run_options(job, steps, faults), std::move(observers), cli::stop_requested);
  const Outcome outcome = run.train();
  const auto report = [&](const data::LoaderStats& stats) {
    for (const std::string& line : cli::input_notices(stats, job.settings.data.orientation)) log.notice(line);
  };
  report(cli::over_ranks(group, task.stats().value_or(data::LoaderStats())));
  if (outcome == Outcome::stopped) {
    report(task.evaluation_stats());
    log.notice(fmt::format("stopped on request at step {}; the same command resumes from there", run.step()));
    return cli::kStopped;
  }
  if (job.validation.empty()) return 0;
  run.evaluate();
  report(task.evaluation_stats());
  return 0;
}

// The run's files must include the final error line, which is printed last.
int run_logged(TrainingJob& job, Group& group, const std::vector<std::string>& notices, cli::Log& log) {
  TrainingOutputs outputs(job, group.places()[static_cast<size_t>(group.rank())].host, log);
  for (const std::string& notice : notices) log.notice(notice);
  try {
    return run_training(job, group, outputs, log);
  } catch (const std::exception& error) {
    log.copy(fmt::format("error: {}", error.what()));
    throw;
  }
}

// False if a rank was asked to stop before all data was open: reading annotations may take long.
bool open_or_stop(TrainingJob& job, Group& group, std::vector<std::string>& notices) {
  try {
    open_data(job, notices);
  } catch (const Error&) {
    if (!cli::stop_requested()) throw;
  }
  return !stop_agreed(group, cli::stop_requested);
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
  std::vector<std::string> notices;
  values.model.continued = continued_conventions(values.checkpoints, *group, notices);
  TrainingJob job{values,
                  values.model.settings(flags, notices, ModelFlags::Use::to_train),
                  cli::ranks_of(*group),
                  {},
                  flags.recorded_identity()};
  job.machine = values.machine.resolve(flags, job.ranks, notices);
  settle_shape(job, flags, *group, notices);
  if (!open_or_stop(job, *group, notices)) {
    cli::print_message("note", "stopped on request while opening the data");
    return cli::kStopped;
  }
  cli::Log log(cli::patient_stdout(), cli::patient_stderr(), job.ranks.is_chief());
  const int code = run_logged(job, *group, notices, log);
  cli::ignore_stop_signals();
  group->finish();
  return code;
}

}  // namespace dtrain::mask_rcnn
