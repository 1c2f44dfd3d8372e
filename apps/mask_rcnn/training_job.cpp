#include "apps/mask_rcnn/training_job.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/cli/machine.h"
#include "apps/cli/recorded_weights.h"
#include "apps/cli/run_main.h"
#include "apps/mask_rcnn/datasets.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::mask_rcnn {
namespace {

// Whether all values with this name suffix are at least `target`. Only the chief has values.
bool reaches(const Evaluation& evaluation, std::string_view ending, double target) {
  return !evaluation.values.empty() && std::ranges::all_of(evaluation.values, [&](const MetricValue& value) {
    return !value.name.ends_with(ending) || value.value >= target;
  });
}

// State of the checkpoint that the run resumes; empty if it starts fresh. Ignores damaged checkpoints, which restoring
// reports.
WeightsRecord continued_record(const cli::CheckpointFlags& flags) {
  RunOptions resume;
  flags.apply(resume);
  WeightsRecord record;
  const auto read = [&](const std::string& path) {
    try {
      if (!looks_complete(path)) return false;
      record = cli::recorded_with(path + "/model.safetensors");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (resume.train_dir.empty()) return record;
  if (!resume.resume_from.empty())
    read(resume.resume_from);
  else if (resume.resume == Resume::newest)
    newest_checkpoint(resume.train_dir, read);
  return record;
}

}  // namespace

std::vector<std::string> continued_conventions(const cli::CheckpointFlags& flags, Group& group,
                                               std::vector<std::string>& notices) {
  const int chief = cli::ranks_of(group).chief;
  nlohmann::json lines = nlohmann::json::array();
  if (group.rank() == chief) lines = unrecorded_conventions(continued_record(flags));
  const char* const what = "conventions of the checkpoint";
  std::vector<std::string> conventions;
  read_text(group, chief, group.broadcast(lines.dump(), chief, what), what, [&](const std::string& told) {
    conventions = parse_json<nlohmann::json>(told, what, Fault::communication).get<std::vector<std::string>>();
  });
  if (!conventions.empty())
    notices.push_back(
        fmt::format("{}: checkpoint of an older version; the run keeps its {}, which --config can override",
                    flags.train_dir, fmt::join(conventions, " ")));
  return conventions;
}

void TrainFlags::declare(cli::FlagSet& flags) {
  model.declare(flags);
  run.declare(flags);
  machine.declare(flags);
  ranks.declare(flags);
  checkpoints.declare_saving(flags).former_name("logdir");
  display.declare(flags);
  summaries.declare(flags, /*always=*/true);
  tracing.declare(flags);
  flags.add("throughput_log_freq", throughput_log_freq,
            "steps between lines of AWS Mask R-CNN's [ThroughputTracker]; 0: one line per epoch", cli::kCount);
  for (const char* length : {"num_eval_batches", "num_eval_epochs"})
    flags.declared(length).refused("evaluations use all validation images");
  flags.declared("num_warmup_batches").refused("all steps are timed; TRAIN.WARMUP sets the learning-rate warm-up");
  flags.declared("sync_batch_norm").refused("use --config BACKBONE.NORM=SyncBN");
}

void TrainFlags::check(const cli::FlagSet& flags) const {
  flags.check_refused();
  run.check(flags);
  machine.check(flags);
  checkpoints.check(flags);
}

void settle_shape(TrainingJob& job, const cli::FlagSet& flags, Group& group, std::vector<std::string>& notices) {
  const TrainFlags& asked_for = job.flags;
  job.shape = {.batch = asked_for.run.batch_size > 0 ? asked_for.run.batch_size : job.settings.batch,
               .micro_steps = static_cast<int>(asked_for.run.gradient_accumulation),
               .gradients = asked_for.ranks.communicator(),
               .buckets = asked_for.ranks.buckets.options(),
               .tune_buckets = asked_for.ranks.autotune_buckets,
               .threads = job.machine.threads,
               .cores = cli::available_cores().usable,
               .device = job.machine.device()};
  ExplicitSettings asked = asked_for.ranks.asked_for(flags);
  asked.threads = asked_for.machine.asks_for_threads();
  RunOptions resume;
  resume.chief = job.ranks.chief;
  asked_for.checkpoints.apply(resume);
  for (std::string& notice : elastic_resume(job.shape, asked, resume, group)) notices.push_back(std::move(notice));
  job.machine.threads = job.shape.threads;
}

void open_data(TrainingJob& job, std::vector<std::string>& notices) {
  job.settings.check_training();
  job.training = open_training(job.settings, notices);
  job.validation = open_validation(job.settings, job.training.get(), notices);
  job.settings.detector.classes = classes_of(*job.training);
  job.settings.fit_epoch(job.training->size(), are_coco(*job.training), job.global_batch());
}

detection::TaskOptions task_options(const TrainingJob& job) {
  detection::TaskOptions options;
  options.training = job.training;
  options.validation = job.validation;
  options.batch = job.shape.batch;
  options.evaluation_batch = job.evaluation_batch();
  options.micro_steps = job.shape.micro_steps;
  options.seed = job.seed();
  options.chief = job.ranks.chief;
  options.identity = job.settings.model_identity();
  options.identity.insert(job.identity.begin(), job.identity.end());
  options.identity["seed"] = fmt::format("{}", job.seed());
  for (const auto& [key, value] : job.settings.described())
    if (!options.identity.contains(key)) options.settings.insert({key, value});
  options.settings.insert({"version", cli::version()});
  options.weights = job.settings.recorded_with_weights();
  options.paste = job.settings.paste();
  return options;
}

RunOptions run_options(const TrainingJob& job, uint64_t steps, Faults& faults) {
  RunOptions options;
  options.chief = job.ranks.chief;
  job.flags.checkpoints.apply(options);
  options.batch = job.shape.batch;
  options.tune_buckets = job.shape.tune_buckets;
  options.faults = &faults;
  Cadence& cadence = options.cadence;
  cadence.total_steps = steps;
  cadence.show_every = static_cast<uint64_t>(job.flags.display.display_every);
  cadence.verify_every = static_cast<uint64_t>(job.flags.ranks.verify_weights_every);
  if (!job.flags.checkpoints.train_dir.empty()) cadence.inspect_every = job.details_every();
  const auto every = [&](int64_t epochs) {
    return static_cast<uint64_t>(epochs * job.settings.epoch_steps(job.global_batch()));
  };
  if (cadence.save_every_steps == 0 && cadence.save_every_seconds == 0)
    cadence.save_every_steps = every(job.settings.checkpoint_epochs);
  if (const uint64_t period = every(job.settings.evaluate_epochs); period > 0 && !job.validation.empty())
    cadence.evaluate_after = [=](uint64_t step) { return step % period == 0 && step < steps; };
  if (job.settings.box_target > 0 || job.settings.mask_target > 0)
    options.enough = [box = job.settings.box_target, mask = job.settings.mask_target](const Evaluation& evaluation) {
      return reaches(evaluation, "-mAP(bbox)/IoU=0.5:0.95", box) &&
             reaches(evaluation, "-mAP(segm)/IoU=0.5:0.95", mask);
    };
  return options;
}

TrainerOptions trainer_options(const TrainingJob& job, Communicator& communicator) {
  TrainerOptions options;
  if (job.ranks.size > 1) options.communicator = &communicator;
  options.buckets = job.shape.buckets;
  options.micro_steps = job.shape.micro_steps;
  options.seed = job.seed();
  options.equal_statistics = job.settings.synchronised_norms;
  job.flags.machine.apply(options);
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
