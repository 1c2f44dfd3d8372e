// dtrain-mask-rcnn train.
#include <memory>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/log.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/checkpoints.h"
#include "apps/cli/options/display.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/options/ranks.h"
#include "apps/cli/options/run.h"
#include "apps/cli/output.h"
#include "apps/cli/ranks.h"
#include "apps/cli/run_main.h"
#include "apps/mask_rcnn/datasets.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/rate_rule.h"
#include "apps/mask_rcnn/training_log.h"
#include "apps/observers/json_lines.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/run/faults.h"
#include "libdtrain/run/run.h"
#include "libdtrain/train/agreement.h"

namespace dtrain::mask_rcnn {
namespace {

struct TrainFlags {
  ModelFlags model;
  cli::RunFlags run;
  cli::MachineFlags machine;
  cli::RankFlags ranks;
  cli::CheckpointFlags checkpoints;
  cli::DisplayFlags display;

  void declare(cli::FlagSet& flags) {
    model.declare(flags);
    run.declare(flags);
    machine.declare(flags);
    ranks.declare(flags);
    checkpoints.declare_saving(flags).former_name("logdir");
    display.declare(flags);
  }
  void check(const cli::FlagSet& flags) const {
    run.check(flags);
    machine.check(flags);
    checkpoints.check(flags);
  }
};

// All that a training is made of.
struct Job {
  const TrainFlags& flags;
  Settings settings;
  cli::Ranks ranks;
  cli::Machine machine;
  std::map<std::string, std::string> identity;

  int64_t batch() const { return flags.run.batch_size > 0 ? flags.run.batch_size : settings.batch; }
  int64_t global_batch() const { return batch() * flags.run.gradient_accumulation * ranks.size; }
};

TaskOptions task_options(const Job& job) {
  TaskOptions options;
  options.batch = job.batch();
  options.evaluation_batch = job.flags.run.eval_batch_size > 0 ? job.flags.run.eval_batch_size : job.batch();
  options.micro_steps = static_cast<int>(job.flags.run.gradient_accumulation);
  options.seed = job.flags.run.seed();
  options.chief = job.ranks.chief;
  options.identity = job.identity;
  for (const auto& [key, value] : job.settings.described()) options.settings.insert({key, value});
  options.settings.insert({"version", cli::version()});
  options.paste =
      job.settings.preset == "torchvision" ? data::coco::Paste::whole_pixels : data::coco::Paste::continuous;
  return options;
}

RunOptions run_options(const Job& job, uint64_t steps, Faults& faults) {
  RunOptions options;
  options.chief = job.ranks.chief;
  job.flags.checkpoints.apply(options);
  options.batch = job.batch();
  options.faults = &faults;
  Cadence& cadence = options.cadence;
  cadence.total_steps = steps;
  cadence.show_every = static_cast<uint64_t>(job.flags.display.display_every);
  cadence.verify_every = static_cast<uint64_t>(job.flags.ranks.verify_weights_every);
  const auto every = [&](int64_t epochs) { return static_cast<uint64_t>(epochs * job.settings.steps_per_epoch); };
  if (cadence.save_every_steps == 0 && cadence.save_every_seconds == 0)
    cadence.save_every_steps = every(job.settings.checkpoint_epochs);
  if (const uint64_t period = every(job.settings.evaluate_epochs); period > 0)
    cadence.evaluate_after = [=](uint64_t step) { return step % period == 0 && step < steps; };
  return options;
}

TrainerOptions trainer_options(const Job& job, Communicator& communicator) {
  TrainerOptions options;
  if (job.ranks.size > 1) options.communicator = &communicator;
  options.buckets = job.flags.ranks.buckets.options();
  options.micro_steps = static_cast<int>(job.flags.run.gradient_accumulation);
  options.seed = job.flags.run.seed();
  job.flags.machine.apply(options);
  return options;
}

OptimizerOptions optimizer_options(const RateSettings& rate) {
  OptimizerOptions options;
  options.weight_decay = static_cast<float>(rate.weight_decay);
  options.update.momentum = static_cast<float>(rate.momentum);
  options.update.clip_norm = static_cast<float>(rate.clip_norm);
  return options;
}

int run_training(Job& job, Group& group, cli::Log& log) {
  TaskOptions options = task_options(job);
  options.training = open_training(job.settings.data);
  for (const std::string& split : validation_splits(job.settings.data))
    options.validation.push_back(open_validation(job.settings.data, split));
  check_equal(group, {{"the training data set", options.training->contents()}}, "data sets");
  job.settings.detector.classes = classes_of(*options.training);
  Model model(job.settings, job.machine, job.flags.run.seed(), /*gradients=*/true);
  if (!job.flags.model.load.empty()) log.line("Weights:     " + model.load(job.flags.model.load, false));

  const char* fault = cli::environment()("DTRAIN_FAULT");
  Faults faults(fault == nullptr ? "" : fault, group.rank(), group.size());
  const auto communicator =
      faults.around(make_communicator(group, *model.context, job.flags.ranks.communicator()), *model.context);
  const RateRule rate(job.settings.rate, job.global_batch());
  const uint64_t steps = job.flags.run.num_batches ? static_cast<uint64_t>(*job.flags.run.num_batches) : rate.steps();
  for (const std::string& line : rate.lines()) log.line(line);

  Optimizer optimizer(model.store, optimizer_options(job.settings.rate));
  Trainer trainer(model.store, optimizer, rate.schedule(), trainer_options(job, *communicator));
  DetectionTask task(model, group, std::move(options));
  TrainingLog lines(log, static_cast<double>(job.global_batch()), steps);
  std::vector<Observer*> observers = {&lines};
  std::optional<observers::JsonLines> metrics;
  if (!job.flags.display.metrics_file.empty() && job.ranks.is_chief()) {
    metrics.emplace(observers::JsonLinesOptions{.path = job.flags.display.metrics_file,
                                                .speed = {.samples_per_step = static_cast<double>(job.global_batch())},
                                                .sums = job.ranks.size > 1,
                                                .gpu = job.machine.gpu},
                    [&log](const std::string& text) { log.notice(text); });
    observers.push_back(&*metrics);
  }
  Run run(task, trainer, group, run_options(job, steps, faults), observers, cli::stop_requested);
  if (run.train() == Outcome::stopped) {
    log.notice(fmt::format("stopped on request at step {}; the same command continues from there", run.step()));
    return cli::kStopped;
  }
  run.evaluate();
  return 0;
}

}  // namespace

int train(const Arguments& argv) {
  TrainFlags values;
  cli::FlagSet flags(argv.front(), "--data_dir DIR [flags] [--config KEY=VALUE...]",
                     "Trains a detector on a data set in COCO's layout. --config takes TensorPack's and AWS Mask "
                     "R-CNN's keys. With --train_dir the same command goes on from the newest checkpoint.");
  values.declare(flags);
  const auto positional = read_arguments(flags, values.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  values.check(flags);
  cli::catch_stop_signals();
  const std::unique_ptr<Group> group = cli::open_group(values.ranks.job.limits(), values.ranks.job.expect_ranks);
  cli::check_flags(*group, flags);
  Job job{values, values.model.settings(), cli::ranks_of(*group), {}, flags.recorded_identity()};
  std::vector<std::string> notices;
  job.machine = values.machine.resolve(flags, job.ranks, notices);
  cli::Log log(cli::patient_stdout(), cli::patient_stderr(), job.ranks.is_chief());
  for (const std::string& notice : notices) log.notice(notice);
  const int code = run_training(job, *group, log);
  cli::ignore_stop_signals();
  group->finish();
  return code;
}

}  // namespace dtrain::mask_rcnn
