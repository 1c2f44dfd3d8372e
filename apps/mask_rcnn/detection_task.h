// What dtrain-mask-rcnn trains: a detector on a data set in COCO's layout.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/pictures.h"
#include "apps/mask_rcnn/coco_score.h"
#include "apps/mask_rcnn/input.h"
#include "apps/mask_rcnn/model.h"
#include "libdtrain/run/task.h"

namespace dtrain {
class Group;
}

namespace dtrain::mask_rcnn {

// A half of the data that an evaluation is about.
struct ValidationSplit {
  std::string name{};
  std::shared_ptr<data::DetectionDataset> images{};
  std::shared_ptr<const data::coco::Annotations> truth{};  // on the rank that scores
};

struct TaskOptions {
  std::shared_ptr<data::DetectionDataset> training{};  // null where nothing is trained
  std::vector<ValidationSplit> validation{};
  int64_t batch = 1, evaluation_batch = 1;  // images of a device
  int micro_steps = 1;
  uint64_t seed = 0;
  int chief = 0;    // the rank that scores
  int workers = 0;  // threads that load images; 0: one per core
  data::coco::Paste paste = data::coco::Paste::continuous;
  // Called by the chief, on the thread that scores, with all detections of a split.
  std::function<void(const ValidationSplit&, const std::vector<data::coco::Detection>&)> detected{};
  std::function<void(const data::LoaderWork&)> report{};      // given what the threads that load training images do
  std::map<std::string, std::string> identity{}, settings{};  // what checkpoints record
};

class DetectionTask final : public Task {
 public:
  DetectionTask(Model& model, Group& group, TaskOptions options);

  void open(uint64_t cursor) override;
  BatchInfo load(int micro_step) override;
  double wait_seconds() const override { return input_->stats().wait_seconds; }
  Loss forward(Tape& tape, int micro_step) override;
  // Detects on all ranks; the chief scores, on a thread of its own.
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override;
  void describe(TrainState& state) const override;

  // The first images of the last step, with the boxes of their objects.
  std::vector<cli::Picture> pictures() const;
  std::optional<data::LoaderStats> stats() const { return input_ ? std::optional(input_->stats()) : std::nullopt; }

 private:
  data::LoaderOptions loader_options(bool training) const;
  // This rank's detections as text; nothing where request.stop said so.
  std::optional<std::string> detect(const ValidationSplit& split, const EvaluationRequest& request, int64_t& batches);

  Model& model_;
  Group& group_;
  TaskOptions options_;
  std::optional<Input> input_;
  std::vector<DeviceBatch> batches_;  // for the step that is being queued, one per micro-step
};

}  // namespace dtrain::mask_rcnn
