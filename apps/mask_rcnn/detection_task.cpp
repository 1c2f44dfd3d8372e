#include "apps/mask_rcnn/detection_task.h"

#include <chrono>

#include "apps/mask_rcnn/batch_pictures.h"
#include "libdtrain/core/cores.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::mask_rcnn {
namespace {

using Clock = std::chrono::steady_clock;

// What one split's detections come to, from the texts of all ranks.
struct Scoring {
  ValidationSplit split;
  std::vector<std::string> texts;
};

Evaluation score(const std::vector<Scoring>& splits, const TaskOptions& options, bool masks, uint64_t examples,
                 Clock::time_point began) {
  Evaluation evaluation{.examples = examples};
  for (const Scoring& scoring : splits) {
    std::vector<data::coco::Detection> detections;
    for (const std::string& text : scoring.texts)
      for (data::coco::Detection& one : data::coco::parse_results(text, "detections of a rank"))
        detections.push_back(std::move(one));
    if (options.detected) options.detected(scoring.split, detections);
    for (MetricValue& value : coco_score(*scoring.split.truth, detections, scoring.split.name, masks, 1))
      evaluation.values.push_back(std::move(value));
  }
  evaluation.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return evaluation;
}

}  // namespace

DetectionTask::DetectionTask(Model& model, Group& group, TaskOptions options)
    : model_(model), group_(group), options_(std::move(options)) {
  batches_.resize(static_cast<size_t>(options_.micro_steps));
}

data::LoaderOptions DetectionTask::loader_options(bool training) const {
  data::LoaderOptions options;
  if (!model_.context->is_cpu()) options.allocator = model_.context->host_allocator();
  options.training = training;
  options.batch = training ? options_.batch : options_.evaluation_batch;
  options.rank = group_.rank();
  options.ranks = group_.size();
  options.seed = options_.seed;
  options.workers = options_.workers;
  if (training) options.group_batch = options_.batch * options_.micro_steps * group_.size();
  return options;
}

void DetectionTask::open(uint64_t cursor) {
  data::LoaderOptions options = loader_options(true);
  options.cursor = cursor;
  options.report = options_.report;
  input_.emplace(*model_.context, options_.training, options, options_.micro_steps);
}

BatchInfo DetectionTask::load(int micro_step) {
  DeviceBatch& batch = batches_[static_cast<size_t>(micro_step)];
  batch = *input_->next();
  return {.samples = batch.samples, .cursor = batch.cursor, .signature = batch.canvas};
}

Loss DetectionTask::forward(Tape& tape, int micro_step) {
  const DeviceBatch& batch = batches_[static_cast<size_t>(micro_step)];
  const models::Canvas& canvas = model_.canvas(batch.images().dim(1), batch.images().dim(2));
  return model_.detector.loss(tape, canvas, model_.pixels(tape, batch.images(), batch.sizes()), batch.truth());
}

std::optional<std::string> DetectionTask::detect(const ValidationSplit& split, const EvaluationRequest& request,
                                                 int64_t& batches) {
  Input input(*model_.context, split.images, loader_options(false), 1);
  std::string text;
  data::coco::ResultWriter writer([&](std::string_view part) { text += part; });
  while (!(request.stop && request.stop(batches + 1))) {
    const std::optional<DeviceBatch> batch = input.next();
    if (!batch) {
      writer.finish();
      return text;
    }
    Tape tape(*model_.context, Mode::eval);
    const models::Canvas& canvas = model_.canvas(batch->images().dim(1), batch->images().dim(2));
    const models::Detections found =
        model_.detector.detect(tape, canvas, model_.pixels(tape, batch->images(), batch->sizes()), batch->sizes());
    for (const auto& image :
         detections_of(*model_.context, found, input.places(), split.images->categories(), options_.paste))
      for (const data::coco::Detection& one : image) writer.add(one);
    if (++batches % request.progress_every == 0 && request.progress)
      request.progress(batches, request.progress_every * options_.evaluation_batch * group_.size());
  }
  return {};
}

std::future<Evaluation> DetectionTask::evaluate(const EvaluationRequest& request) {
  DT_CHECK(!options_.validation.empty(), "evaluation: there is no validation data");
  const Clock::time_point began = Clock::now();
  std::vector<Scoring> splits;
  uint64_t examples = 0;
  int64_t batches = 0;
  for (const ValidationSplit& split : options_.validation) {
    const std::optional<std::string> mine = detect(split, request, batches);
    if (!mine) return {};
    splits.push_back({split, group_.all_gather(*mine, "detections")});
    examples += split.images->size();
  }
  const bool masks = model_.detector.options().masks;
  if (group_.rank() == options_.chief)
    return std::async(std::launch::async,
                      [=, options = options_] { return score(splits, options, masks, examples, began); });
  std::promise<Evaluation> nothing;
  nothing.set_value({.examples = examples});
  return nothing.get_future();
}

std::vector<cli::Picture> DetectionTask::pictures() const {
  return cli::encoded(batch_pictures(*model_.context, batches_.front(), options_.training->categories()));
}

void DetectionTask::describe(TrainState& state) const {
  state.identity = options_.identity;
  state.settings = options_.settings;
  if (options_.training) state.identity.insert({"data set", options_.training->identity()});
}

}  // namespace dtrain::mask_rcnn
