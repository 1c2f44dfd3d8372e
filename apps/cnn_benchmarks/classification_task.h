// What dtrain-cnn-benchmarks trains: an image classifier on a data set, or on one synthetic batch.
#pragma once

#include <optional>
#include <vector>

#include "apps/cli/pictures.h"
#include "apps/cnn_benchmarks/session.h"
#include "libdtrain/run/task.h"

namespace dtrain::cnn_benchmarks {

class ClassificationTask final : public Task {
 public:
  explicit ClassificationTask(Session& session) : session_(session) {}

  void open(uint64_t cursor) override;
  BatchInfo load(int micro_step) override;
  double wait_seconds() const override { return input_->wait_seconds(); }
  Loss forward(Tape& tape, int micro_step) override;
  // Top-1 and top-5 over the validation half.
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override;
  void describe(TrainState& state) const override;

  // The metrics of the batch last loaded, in inference mode.
  std::vector<MetricValue> infer() const;
  // Images of the first batch of the last step, as they are before they are normalised; none of a synthetic batch.
  std::vector<cli::Picture> pictures() const;
  // Counts of records and of bad ones; nothing for synthetic data or before open().
  std::optional<data::LoaderStats> stats() const { return input_ ? input_->stats() : std::nullopt; }

 private:
  // Smoothed labels in training only.
  Loss loss_of(Tape& tape, const data::Batch& batch) const;

  Session& session_;
  std::optional<Input> input_;
  std::vector<data::Batch> batches_;  // for the step that is being queued, one per micro-step
};

}  // namespace dtrain::cnn_benchmarks
