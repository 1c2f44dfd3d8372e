// What programs train detectors by: a detector on a data set of images with objects, scored by COCO's rules.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/image_task.h"
#include "apps/detection/found.h"
#include "apps/detection/input.h"

namespace dtrain {
class Group;
}

namespace dtrain::detection {

// A detector on its device.
class Model {
 public:
  virtual ~Model() = default;
  virtual Context& device() = 0;
  virtual Loss loss(Tape& tape, const DeviceBatch& batch) = 0;
  // On a tape in Mode::eval. Waits for the device.
  virtual models::Detections detect(Tape& tape, const DeviceBatch& batch) = 0;
};

// A half of the data that an evaluation is about.
struct ValidationSplit {
  std::string name{};
  std::shared_ptr<data::DetectionDataset> images{};
  std::shared_ptr<const data::coco::Annotations> truth{};  // on the rank that scores
};

struct TaskOptions {
  std::shared_ptr<data::DetectionDataset> training{};  // null where nothing is trained
  // Made once and trained on for ever, in place of `training`.
  std::function<DeviceBatch()> synthetic{};
  std::vector<ValidationSplit> validation{};
  // Of a device and of what is trained; `batch` rows of every rank. What is not about the data is left as it is.
  int64_t batch = 1, evaluation_batch = 1;  // images of a device
  int micro_steps = 1;
  uint64_t seed = 0;
  int chief = 0;                  // the rank that scores
  data::LoaderOptions loader{};   // workers, slots and what becomes of bad records
  bool waits_for_scores = false;  // all ranks do, and know them; else training goes on meanwhile
  data::coco::Paste paste = data::coco::Paste::continuous;
  // What the detections of a split come to. Called by the chief, on the thread that scores.
  std::function<std::vector<MetricValue>(const ValidationSplit&, const std::vector<data::coco::Detection>&)> score{};
  // The images of a batch as people see them; none: pixels alone.
  std::function<std::vector<data::Image>(const DeviceBatch&)> draw{};
  std::function<void(const data::LoaderWork&)> report{};      // given what the threads that load training images do
  std::map<std::string, std::string> identity{}, settings{};  // what checkpoints record
  std::map<std::string, std::string> weights{};  // and their weights, with the categories of the training data
};

class DetectionTask final : public cli::ImageTask {
 public:
  // What is given outlives the task.
  DetectionTask(Model& model, Group& group, TaskOptions options);

  void open(uint64_t cursor) override;
  BatchInfo load(int micro_step) override;
  double wait_seconds() const override { return input_ ? input_->stats().wait_seconds : 0; }
  Loss forward(Tape& tape, int micro_step) override;
  // Detects on all ranks; the chief scores, on a thread of its own.
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override;
  void describe(TrainState& state) const override;

  // Detects and has no metrics.
  std::vector<MetricValue> infer() override;
  std::vector<cli::Picture> pictures() const override;
  std::optional<data::LoaderStats> stats() const override {
    return input_ ? std::optional(input_->stats()) : std::nullopt;
  }
  // All splits together.
  const data::LoaderStats& evaluation_stats() const override { return evaluation_stats_; }

 private:
  data::LoaderOptions loader_options(bool training) const;
  // This rank's detections, encoded by append_detection; nothing where request.stop returned true. Adds to `batches`
  // and `images`.
  std::optional<std::string> detect(const ValidationSplit& split, const EvaluationRequest& request, int64_t& batches,
                                    data::LoaderStats& images);
  // On all ranks what the chief has come to.
  Evaluation shared(std::future<Evaluation> scored, uint64_t examples);

  Model& model_;
  Group& group_;
  TaskOptions options_;
  std::optional<Input> input_;
  data::LoaderStats evaluation_stats_;
  uint64_t cursor_ = 0;               // of synthetic batches
  std::vector<DeviceBatch> batches_;  // for the step that is being queued, one per micro-step
};

}  // namespace dtrain::detection
