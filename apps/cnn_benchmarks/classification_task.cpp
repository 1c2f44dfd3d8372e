#include "apps/cnn_benchmarks/classification_task.h"

#include <fmt/format.h>

#include "apps/cli/input_notices.h"
#include "apps/cli/recorded_weights.h"
#include "apps/cli/run_main.h"
#include "apps/cli/vision.h"
#include "apps/ssd/data.h"
#include "libdtrain/run/evaluation.h"

namespace dtrain::cnn_benchmarks {
namespace {

void describe_run(const Session& session, TrainState& state) {
  const Config& config = session.config;
  state.identity = config.recorded_identity;
  state.identity.insert({
      {"classes", fmt::format("{}", session.model.classes)},
      {"image size", fmt::format("{}", session.model.image_size)},
      {"data set", session.datasets.training ? session.datasets.training->identity() : "synthetic " + config.dataset},
  });
  state.settings = config.recorded_settings;
  state.settings.insert({
      {"version", cli::version()},
      {"precision", cli::name_of_precision(config.machine.precision)},
      {"sums over ranks", session.communicator->describe()},
  });
  state.weights = cli::classifier_record(state, config.dataset, session.datasets.class_names);
}

detection::TaskOptions detection_options(Session& session) {
  const Config& config = session.config;
  detection::TaskOptions options{.training = session.datasets.objects,
                                 .batch = config.batch,
                                 .evaluation_batch = config.eval_batch,
                                 .micro_steps = static_cast<int>(config.micro_steps),
                                 .seed = config.flags.run.seed(),
                                 .chief = config.ranks.chief,
                                 .loader = loader_options(*session.context, config, true),
                                 .waits_for_scores = !config.flags.ssd.collect_eval_results_async,
                                 .score = ssd::score,
                                 .report = session.datasets.report};
  if (config.evaluates()) options.validation = {session.datasets.scored};
  if (config.synthetic())
    options.synthetic = [&] { return session.detector->synthetic_batch(config.batch, config.flags.run.seed()); };
  TrainState state;
  describe_run(session, state);
  options.identity = state.identity;
  options.settings = state.settings;
  options.weights = state.weights;
  return options;
}

}  // namespace

std::unique_ptr<cli::ImageTask> make_task(Session& session) {
  if (!session.detector) return std::make_unique<ClassificationTask>(session);
  return std::make_unique<detection::DetectionTask>(*session.detector, session.group, detection_options(session));
}

void ClassificationTask::open(uint64_t cursor) {
  const Config& config = session_.config;
  batches_.resize(static_cast<size_t>(config.micro_steps));
  input_ = Input::training(*session_.context, config, session_.datasets, session_.pixels(), cursor);
}

BatchInfo ClassificationTask::load(int micro_step) {
  const data::Batch& batch = batches_[static_cast<size_t>(micro_step)] = *input_->next();
  return {.samples = batch.samples, .cursor = batch.cursor, .signature = input_->stage()};
}

Loss ClassificationTask::forward(Tape& tape, int micro_step) {
  return loss_of(tape, batches_[static_cast<size_t>(micro_step)]);
}

Loss ClassificationTask::loss_of(Tape& tape, const data::Batch& batch) const {
  SoftmaxCrossEntropyOptions options;
  const Flags& f = session_.config.flags;
  if (tape.training()) options.label_smoothing = static_cast<float>(f.model.label_smoothing);
  options.partners = batch.find("partners");
  options.shares = batch.find("shares");
  const Tensor images = session_.config.synthetic()
                            ? batch["images"]
                            : cli::network_input(*session_.context, batch, session_.pixels(), f.augment.erased_value());
  return session_.model.loss(tape, tape.constant(images), batch["labels"], options);
}

std::future<Evaluation> ClassificationTask::evaluate(const EvaluationRequest& request) {
  Input input = Input::validation(*session_.context, session_.config, session_.datasets, session_.pixels());
  const data::Batch* batch = nullptr;
  EvaluationLoop loop;
  loop.batches = session_.plan.eval_batches;
  loop.batch = session_.config.global_eval_batch();
  loop.load = [&]() -> std::optional<int64_t> {
    batch = input.next();
    return batch ? std::optional(batch->valid) : std::nullopt;
  };
  loop.forward = [&](Tape& tape) { return loss_of(tape, *batch); };
  std::future<Evaluation> evaluation = evaluate_batches(*session_.context, session_.group, request, loop);
  if (evaluation.valid())
    evaluation_stats_ = cli::over_ranks(session_.group, input.stats().value_or(data::LoaderStats()));
  return evaluation;
}

std::vector<MetricValue> ClassificationTask::infer() {
  Tape tape(*session_.context, prepared_);
  return metrics_of(*session_.context, [&] { return loss_of(tape, batches_.front()); });
}

std::vector<cli::Picture> ClassificationTask::pictures() const {
  if (session_.config.synthetic()) return {};
  return cli::encoded(cli::first_images(*session_.context, batches_.front()["images"]));
}

void ClassificationTask::describe(TrainState& state) const { describe_run(session_, state); }

}  // namespace dtrain::cnn_benchmarks
