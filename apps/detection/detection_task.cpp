#include "apps/detection/detection_task.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "apps/cli/input_notices.h"
#include "apps/detection/recorded_categories.h"
#include "data/coco/detection_message.h"
#include "dtrain/distributed/group.h"
#include "libdtrain/core/cores.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::detection {
namespace {

using Clock = std::chrono::steady_clock;

// A split and the encoded detections of each rank.
struct Scoring {
  ValidationSplit split;
  std::vector<std::string> messages;
};

Evaluation score(const std::vector<Scoring>& splits, const Group& group, const TaskOptions& options, uint64_t examples,
                 Clock::time_point began) {
  Evaluation evaluation{.examples = examples};
  for (const Scoring& scoring : splits) {
    std::vector<data::coco::Detection> detections;
    for (size_t rank = 0; rank < scoring.messages.size(); ++rank)
      read_text(group, static_cast<int>(rank), scoring.messages[rank], "detections", [&](const std::string& message) {
        for (data::coco::Detection& one : data::coco::parse_detections(message)) detections.push_back(std::move(one));
      });
    for (MetricValue& value : options.score(scoring.split, detections)) evaluation.values.push_back(std::move(value));
  }
  evaluation.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return evaluation;
}

std::future<Evaluation> ready(Evaluation evaluation) {
  std::promise<Evaluation> result;
  result.set_value(std::move(evaluation));
  return result.get_future();
}

}  // namespace

DetectionTask::DetectionTask(Model& model, Group& group, TaskOptions options)
    : ImageTask(options.micro_steps), model_(model), group_(group), options_(std::move(options)) {
  batches_.resize(static_cast<size_t>(options_.micro_steps));
}

data::LoaderOptions DetectionTask::loader_options(bool training) const {
  data::LoaderOptions options = options_.loader;
  if (!model_.device().is_cpu()) options.allocator = model_.device().host_allocator();
  options.training = training;
  options.batch = training ? options_.batch : options_.evaluation_batch;
  options.rank = group_.rank();
  options.ranks = group_.size();
  options.seed = options_.seed;
  if (training) options.group_batch = options_.batch * options_.micro_steps * group_.size();
  return options;
}

void DetectionTask::open(uint64_t cursor) {
  cursor_ = cursor;
  if (options_.synthetic) {
    std::ranges::fill(batches_, options_.synthetic());
    return;
  }
  data::LoaderOptions options = loader_options(true);
  options.cursor = cursor;
  options.report = options_.report;
  input_.emplace(model_.device(), options_.training, options, options_.micro_steps);
}

BatchInfo DetectionTask::load(int micro_step) {
  DeviceBatch& batch = batches_[static_cast<size_t>(micro_step)];
  if (input_)
    batch = *input_->next();
  else
    batch.cursor = cursor_ += static_cast<uint64_t>(options_.batch * group_.size());
  return {.samples = batch.samples, .cursor = batch.cursor, .signature = batch.canvas};
}

Loss DetectionTask::forward(Tape& tape, int micro_step) {
  return model_.loss(tape, batches_[static_cast<size_t>(micro_step)]);
}

std::optional<std::string> DetectionTask::detect(const ValidationSplit& split, const EvaluationRequest& request,
                                                 int64_t& batches, data::LoaderStats& images) {
  Input input(model_.device(), split.images, loader_options(false), 1);
  std::string message;
  while (!(request.stop && request.stop(batches + 1))) {
    const std::optional<DeviceBatch> batch = input.next();
    if (!batch) {
      images.add(input.stats());
      return message;
    }
    Tape tape(model_.device(), Mode::eval);
    const models::Detections found = model_.detect(tape, *batch);
    for (const auto& image :
         detections_of(model_.device(), found, input.places(), split.images->categories(), options_.paste))
      for (const data::coco::Detection& one : image) data::coco::append_detection(message, one);
    if (++batches % request.progress_every == 0 && request.progress)
      request.progress(batches, request.progress_every * options_.evaluation_batch * group_.size());
  }
  return {};
}

Evaluation DetectionTask::shared(std::future<Evaluation> scored, uint64_t examples) {
  using Json = nlohmann::json;
  Json text;
  if (group_.rank() == options_.chief) {
    const Evaluation mine = scored.get();
    text["seconds"] = mine.seconds;
    for (const MetricValue& value : mine.values) text["values"].push_back({value.name, value.value});
  }
  const char* const what = "result of the evaluation";
  Evaluation evaluation{.examples = examples};
  read_text(group_, options_.chief, group_.broadcast(text.dump(), options_.chief, what), what,
            [&](const std::string& said) {
              const auto told = parse_json<Json>(said, what, Fault::communication, {.values = 1'000'000});
              evaluation.seconds = told.at("seconds");
              for (const Json& value : told.at("values")) evaluation.values.push_back({value.at(0), value.at(1)});
            });
  return evaluation;
}

std::future<Evaluation> DetectionTask::evaluate(const EvaluationRequest& request) {
  DT_CHECK(!options_.validation.empty(), "evaluation: there is no validation data");
  const Clock::time_point began = Clock::now();
  std::vector<Scoring> splits;
  data::LoaderStats images;
  uint64_t examples = 0;
  int64_t batches = 0;
  for (const ValidationSplit& split : options_.validation) {
    const std::optional<std::string> mine = detect(split, request, batches, images);
    if (!mine) return {};
    splits.push_back({split, group_.all_gather(*mine, "detections")});
    examples += split.images->size();
  }
  evaluation_stats_ = cli::over_ranks(group_, images);
  std::future<Evaluation> scored;
  if (group_.rank() == options_.chief)
    scored = std::async(std::launch::async, [=, &group = group_, options = options_] {
      return score(splits, group, options, examples, began);
    });
  else
    scored = ready({.examples = examples});
  return options_.waits_for_scores ? ready(shared(std::move(scored), examples)) : std::move(scored);
}

std::vector<MetricValue> DetectionTask::infer() {
  Tape tape(model_.device(), Mode::eval);
  model_.device().name_work("forward");
  model_.detect(tape, batches_.front());
  model_.device().name_work(nullptr);
  return {};
}

std::vector<cli::Picture> DetectionTask::pictures() const {
  if (options_.synthetic) return {};
  const DeviceBatch& batch = batches_.front();
  return cli::encoded(options_.draw ? options_.draw(batch) : cli::first_images(model_.device(), batch.images()));
}

void DetectionTask::describe(TrainState& state) const {
  state.identity = options_.identity;
  state.settings = options_.settings;
  state.weights = options_.weights;
  if (!options_.training) return;
  state.identity.insert({"data set", options_.training->identity()});
  state.weights.insert({kCategoriesKey, categories_text(options_.training->categories())});
}

}  // namespace dtrain::detection
