#include "apps/mask_rcnn/training_job.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/fine_tuning.h"
#include "apps/cli/ranks.h"
#include "apps/cli/run_main.h"
#include "apps/mask_rcnn/batch_pictures.h"
#include "apps/mask_rcnn/coco_score.h"
#include "apps/mask_rcnn/datasets.h"
#include "apps/mask_rcnn/former_versions.h"

namespace dtrain::mask_rcnn {
namespace {

// Whether all values with this name suffix are at least `target`. Only the chief has values.
bool reaches(const Evaluation& evaluation, std::string_view ending, double target) {
  return !evaluation.values.empty() && std::ranges::all_of(evaluation.values, [&](const MetricValue& value) {
    return !value.name.ends_with(ending) || value.value >= target;
  });
}

}  // namespace

TrainingSettings make_settings(TrainFlags flags, const cli::FlagSet& set, Group& group,
                               std::vector<std::string>& notices) {
  flags.model.continued = continued_conventions(flags, group, notices);
  TrainingSettings settings{flags.model.settings(set, notices, ModelFlags::Use::to_train), std::move(flags),
                            cli::ranks_of(group)};
  const TrainFlags& f = settings.flags;
  settings.flag_identity = set.recorded_identity();
  settings.flag_settings = set.recorded_settings();
  settings.machine = f.machine.resolve(set, settings.ranks, notices);
  settings.shape = {.batch = f.run.batch_size > 0 ? f.run.batch_size : settings.batch,
                    .micro_steps = static_cast<int>(f.run.gradient_accumulation),
                    .gradients = f.ranks.communicator(),
                    .buckets = f.ranks.buckets.options(),
                    .tune_buckets = f.ranks.autotune_buckets,
                    .threads = settings.machine.threads,
                    .cores = cli::available_cores().usable,
                    .device = settings.machine.device()};
  for (std::string& notice :
       elastic_resume(settings.shape, f.explicit_settings(set), f.resume_options(settings.ranks), group))
    notices.push_back(std::move(notice));
  settings.machine.threads = settings.shape.threads;
  return settings;
}

Datasets open_datasets(TrainingSettings& settings, std::vector<std::string>& notices) {
  settings.check_training();
  keep_former_names(settings, notices);
  Datasets datasets;
  datasets.training = open_training(settings, notices);
  datasets.validation = open_validation(settings, datasets.training.get(), notices);
  settings.detector.classes = classes_of(*datasets.training);
  settings.fit_epoch(datasets.training->size(), are_coco(*datasets.training), settings.global_batch());
  return datasets;
}

TrainingJob::TrainingJob(TrainingSettings job_settings, Datasets job_datasets, Group& job_group)
    : settings(std::move(job_settings)),
      datasets(std::move(job_datasets)),
      group(job_group),
      model(settings, settings.machine, settings.random_seed(), /*gradients=*/true, &group),
      weights_summary(load_weights()),
      faults(cli::injected_faults(group)),
      communicator(faults.around(make_communicator(group, *model.context, settings.shape.gradients), *model.context)),
      schedule(make_schedule(settings, settings.flags.run, datasets.training->size(), settings.global_batch())),
      total_steps(steps_of(schedule, settings.flags.run)) {}

std::string TrainingJob::load_weights() {
  std::string summary;
  const auto note = [&](std::string text) {
    if (!text.empty()) notices.push_back(std::move(text));
  };
  if (!settings.weights.empty()) {
    const WeightReport report = model.load(settings.weights, /*complete=*/false);
    summary = report.summary();
    note(cli::initial_values(report));
  }
  const cli::FineTuningFlags& flags = settings.flags.fine_tuning;
  note(cli::fine_tune(model.store, flags.freeze, flags.head_learning_rate_factor));
  return summary;
}

detection::TaskOptions TrainingJob::task_options() {
  detection::TaskOptions options;
  options.training = datasets.training;
  options.validation = datasets.validation;
  options.batch = settings.shape.batch;
  options.evaluation_batch = settings.eval_batch();
  options.micro_steps = settings.shape.micro_steps;
  options.seed = settings.random_seed();
  options.chief = settings.ranks.chief;
  options.identity = settings.model_identity();
  options.identity.insert(settings.flag_identity.begin(), settings.flag_identity.end());
  options.identity["seed"] = fmt::format("{}", options.seed);
  for (const auto& [key, value] : settings.described())
    if (!options.identity.contains(key)) options.settings.insert({key, value});
  options.settings.insert(settings.flag_settings.begin(), settings.flag_settings.end());
  options.settings.insert({"version", cli::version()});
  options.weights = settings.recorded_with_weights();
  options.paste = settings.paste();
  options.report = datasets.report;
  options.score = scorer(model.detector.options().masks, settings.area_of_box());
  options.draw = [this](const detection::DeviceBatch& batch) {
    return batch_pictures(*model.context, batch, datasets.training->categories());
  };
  return options;
}

RunOptions TrainingJob::run_options() {
  RunOptions options =
      settings.flags.run_options(settings.ranks, settings.shape, total_steps, settings.details_every());
  options.faults = &faults;
  Cadence& cadence = options.cadence;
  const auto every = [&](int64_t epochs) {
    return static_cast<uint64_t>(epochs * settings.epoch_steps(settings.global_batch()));
  };
  if (cadence.save_every_steps == 0 && cadence.save_every_seconds == 0)
    cadence.save_every_steps = every(settings.checkpoint_epochs);
  if (const uint64_t period = every(settings.evaluate_epochs); period > 0 && !datasets.validation.empty())
    cadence.evaluate_after = [period, end = total_steps](uint64_t step) { return step % period == 0 && step < end; };
  if (settings.box_target > 0 || settings.mask_target > 0)
    options.enough = [box = settings.box_target, mask = settings.mask_target](const Evaluation& evaluation) {
      return reaches(evaluation, "-mAP(bbox)/IoU=0.5:0.95", box) &&
             reaches(evaluation, "-mAP(segm)/IoU=0.5:0.95", mask);
    };
  return options;
}

TrainerOptions TrainingJob::trainer_options() const {
  TrainerOptions options = settings.flags.trainer_options(settings.shape);
  if (settings.ranks.size > 1) options.communicator = communicator.get();
  options.seed = settings.random_seed();
  options.equal_statistics = settings.synchronised_norms;
  return options;
}

OptimizerOptions optimizer_options(const RateSettings& rate) {
  OptimizerOptions options;
  options.weight_decay = static_cast<float>(rate.weight_decay);
  options.decays_all = rate.decays_biases;
  options.update.momentum = static_cast<float>(rate.momentum);
  options.update.clip_norm = static_cast<float>(rate.clip_norm);
  return options;
}

}  // namespace dtrain::mask_rcnn
