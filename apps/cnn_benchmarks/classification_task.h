// Training task of dtrain-cnn-benchmarks: an image classifier on a data set, or on one synthetic batch.
#pragma once

#include <optional>
#include <vector>

#include "apps/cli/image_task.h"
#include "apps/cnn_benchmarks/training_job.h"
#include "dtrain/autograd/prepared_weights.h"
#include "libdtrain/train/label_scores.h"

namespace dtrain::cnn_benchmarks {

// Creates the classification or detection task of --model. The job outlives it.
std::unique_ptr<cli::ImageTask> make_task(TrainingJob& job);

class ClassificationTask final : public cli::ImageTask {
 public:
  explicit ClassificationTask(TrainingJob& job)
      : ImageTask(job.settings.shape.micro_steps), job_(job), prepared_(job.store) {}

  void open(uint64_t cursor) override;
  BatchInfo load(int micro_step) override;
  double wait_seconds() const override { return input_->wait_seconds(); }
  Loss forward(Tape& tape, int micro_step) override;
  // Top-1 and top-5 accuracy over the validation data, or the metrics of LabelScores.
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override;
  void describe(TrainState& state) const override;

  std::vector<MetricValue> infer() override;
  std::vector<cli::Picture> pictures() const override;
  std::optional<data::LoaderStats> stats() const override { return input_ ? input_->stats() : std::nullopt; }
  const data::LoaderStats& evaluation_stats() const override { return evaluation_stats_; }

 private:
  // Label smoothing in training only. Unless `scores` is null, collects the scores of a multi-label batch.
  Loss loss_of(Tape& tape, const data::Batch& batch, LabelScores* scores = nullptr) const;

  TrainingJob& job_;
  std::optional<Input> input_;
  data::LoaderStats evaluation_stats_;
  PreparedWeights prepared_;          // for infer()
  std::vector<data::Batch> batches_;  // inputs of the step that is being launched, one per micro-step
};

}  // namespace dtrain::cnn_benchmarks
