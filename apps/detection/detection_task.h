// Detection training task: a detector on a data set, evaluated with COCO metrics.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/image_task.h"
#include "apps/detection/detections.h"
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
  // Inference on a tape in Mode::eval. Waits for the device.
  virtual models::Detections detect(Tape& tape, const DeviceBatch& batch) = 0;
};

// An evaluation split.
struct ValidationSplit {
  std::string name{};
  std::shared_ptr<data::DetectionDataset> images{};
  std::shared_ptr<const data::coco::Annotations> truth{};  // ground truth, on the scoring rank
};

struct TaskOptions {
  std::shared_ptr<data::DetectionDataset> training{};  // null without training
  // Synthetic batch, used instead of `training`.
  std::function<DeviceBatch()> synthetic{};
  std::vector<ValidationSplit> validation{};
  int64_t batch = 1, evaluation_batch = 1;  // per device
  int micro_steps = 1;
  uint64_t seed = 0;
  int chief = 0;                  // the rank that scores
  data::LoaderOptions loader{};   // workers, slots and handling of bad records
  bool waits_for_scores = false;  // all ranks wait for the metrics; else training continues meanwhile
  data::coco::Paste paste = data::coco::Paste::continuous;
  // Metrics of a split's detections. Called on the chief's scoring thread.
  std::function<std::vector<MetricValue>(const ValidationSplit&, const std::vector<data::coco::Detection>&)> score{};
  // Pictures of a batch; none: pixels only.
  std::function<std::vector<data::Image>(const DeviceBatch&)> draw{};
  std::function<void(const data::LoaderWork&)> report{};      // trace callback of the training loader's threads
  std::map<std::string, std::string> identity{}, settings{};  // state recorded in checkpoints
  std::map<std::string, std::string> weights{};  // and metadata of the weights, with the training data's categories
};

class DetectionTask final : public cli::ImageTask {
 public:
  // All arguments outlive the task.
  DetectionTask(Model& model, Group& group, TaskOptions options);

  void open(uint64_t cursor) override;
  BatchInfo load(int micro_step) override;
  double wait_seconds() const override { return input_ ? input_->stats().wait_seconds : 0; }
  Loss forward(Tape& tape, int micro_step) override;
  // Runs inference on all ranks; the chief computes the metrics on a background thread.
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override;
  void describe(TrainState& state) const override;

  // Runs inference without metrics.
  std::vector<MetricValue> infer() override;
  std::vector<cli::Picture> pictures() const override;
  std::optional<data::LoaderStats> stats() const override {
    return input_ ? std::optional(input_->stats()) : std::nullopt;
  }
  // Sum over all splits.
  const data::LoaderStats& evaluation_stats() const override { return evaluation_stats_; }

 private:
  data::LoaderOptions loader_options(bool training) const;
  // This rank's detections, encoded by append_detection; none if request.stop was set. Adds to the counts `batches` and
  // `images`.
  std::optional<std::string> detect(const ValidationSplit& split, const EvaluationRequest& request, int64_t& batches,
                                    data::LoaderStats& images);
  // Broadcasts the chief's metrics to all ranks.
  Evaluation shared(std::future<Evaluation> scored, uint64_t examples);

  Model& model_;
  Group& group_;
  TaskOptions options_;
  std::optional<Input> input_;
  data::LoaderStats evaluation_stats_;
  uint64_t cursor_ = 0;               // for synthetic batches
  std::vector<DeviceBatch> batches_;  // inputs of the step that is being launched, one per micro-step
};

}  // namespace dtrain::detection
