#include "apps/cnn_benchmarks/classification_task.h"

#include <fmt/format.h>

#include "apps/cli/input_notices.h"
#include "apps/cli/multi_label.h"
#include "apps/cli/recorded_weights.h"
#include "apps/cli/run_main.h"
#include "apps/cli/vision.h"
#include "apps/ssd/data.h"
#include "dtrain/run/evaluation.h"

namespace dtrain::cnn_benchmarks {
namespace {

void describe_run(const TrainingJob& job, TrainState& state) {
  const Settings& settings = job.settings;
  state.identity = settings.recorded_identity;
  state.identity.insert({
      {"classes", fmt::format("{}", job.model.classes)},
      {"image size", fmt::format("{}", job.model.image_size)},
      {"data set", job.datasets.training ? job.datasets.training->identity() : "synthetic " + settings.dataset},
  });
  if (settings.multi_label) state.identity[cli::kLossKey] = "bce";
  state.settings = settings.recorded_settings;
  state.settings.insert({
      {"version", cli::version()},
      {"precision", cli::name_of_precision(settings.machine.precision)},
      {"sums over ranks", job.communicator->describe()},
  });
  state.weights = cli::classifier_record(state, settings.dataset, job.datasets.class_names);
}

detection::TaskOptions detection_options(TrainingJob& job) {
  const Settings& settings = job.settings;
  detection::TaskOptions options{.training = job.datasets.objects,
                                 .batch = settings.shape.batch,
                                 .evaluation_batch = settings.eval_batch,
                                 .micro_steps = settings.shape.micro_steps,
                                 .seed = settings.flags.run.seed(),
                                 .chief = settings.ranks.chief,
                                 .loader = loader_options(*job.context, settings, true),
                                 .waits_for_scores = !settings.flags.ssd.collect_eval_results_async,
                                 .score = ssd::score,
                                 .report = job.datasets.report};
  if (settings.evaluates()) options.validation = {job.datasets.scored};
  if (settings.synthetic())
    options.synthetic = [&] { return job.detector->synthetic_batch(settings.shape.batch, settings.flags.run.seed()); };
  TrainState state;
  describe_run(job, state);
  options.identity = state.identity;
  options.settings = state.settings;
  options.weights = state.weights;
  return options;
}

}  // namespace

std::unique_ptr<cli::ImageTask> make_task(TrainingJob& job) {
  if (!job.detector) return std::make_unique<ClassificationTask>(job);
  return std::make_unique<detection::DetectionTask>(*job.detector, job.group, detection_options(job));
}

void ClassificationTask::open(uint64_t cursor) {
  const Settings& settings = job_.settings;
  batches_.resize(static_cast<size_t>(settings.shape.micro_steps));
  input_ = Input::training(*job_.context, settings, job_.datasets, job_.pixels(), cursor);
}

BatchInfo ClassificationTask::load(int micro_step) {
  const data::Batch& batch = batches_[static_cast<size_t>(micro_step)] = *input_->next();
  // The number of rows is a constant of the captured step.
  const std::string rows = job_.settings.multi_label ? fmt::format(" {}", batch.valid) : "";
  return {.samples = batch.samples, .cursor = batch.cursor, .signature = input_->stage() + rows};
}

Loss ClassificationTask::forward(Tape& tape, int micro_step) {
  return loss_of(tape, batches_[static_cast<size_t>(micro_step)]);
}

Loss ClassificationTask::loss_of(Tape& tape, const data::Batch& batch, LabelScores* scores) const {
  SoftmaxCrossEntropyOptions options;
  const Flags& f = job_.settings.flags;
  if (tape.training()) options.label_smoothing = static_cast<float>(f.model.label_smoothing);
  options.partners = batch.find("partners");
  options.shares = batch.find("shares");
  const Tensor images = job_.settings.synthetic()
                            ? batch["images"]
                            : cli::network_input(*job_.context, batch, job_.pixels(), f.augment.erased_value());
  if (job_.settings.multi_label)
    return cli::multi_label_loss(*job_.context, job_.model, tape, tape.constant(images), batch, scores);
  return job_.model.loss(tape, tape.constant(images), batch["labels"], options);
}

std::future<Evaluation> ClassificationTask::evaluate(const EvaluationRequest& request) {
  Input input = Input::validation(*job_.context, job_.settings, job_.datasets, job_.pixels());
  const data::Batch* batch = nullptr;
  EvaluationLoop loop;
  loop.batches = job_.schedule.eval_batches;
  loop.batch = job_.settings.global_eval_batch();
  loop.load = [&]() -> std::optional<int64_t> {
    batch = input.next();
    return batch ? std::optional(batch->valid) : std::nullopt;
  };
  std::optional<LabelScores> scores;
  if (job_.settings.multi_label) scores.emplace(job_.model.classes);
  loop.forward = [&](Tape& tape) { return loss_of(tape, *batch, scores ? &*scores : nullptr); };
  std::future<Evaluation> evaluation = evaluate_batches(*job_.context, job_.group, request, loop);
  if (evaluation.valid() && scores) evaluation = cli::with_values(std::move(evaluation), scores->values(job_.group));
  if (evaluation.valid()) evaluation_stats_ = cli::over_ranks(job_.group, input.stats().value_or(data::LoaderStats()));
  return evaluation;
}

std::vector<MetricValue> ClassificationTask::infer() {
  Tape tape(*job_.context, prepared_);
  return metrics_of(*job_.context, [&] { return loss_of(tape, batches_.front()); });
}

std::vector<cli::Picture> ClassificationTask::pictures() const {
  if (job_.settings.synthetic()) return {};
  return cli::encoded(cli::first_images(*job_.context, batches_.front()["images"]));
}

void ClassificationTask::describe(TrainState& state) const { describe_run(job_, state); }

}  // namespace dtrain::cnn_benchmarks
