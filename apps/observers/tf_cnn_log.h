// Log in tf_cnn_benchmarks' format, line for line, for its log parsers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "apps/cli/log.h"
#include "apps/cli/machine.h"
#include "apps/observers/step_statistics.h"
#include "dtrain/distributed/communicator.h"

namespace dtrain::observers {

struct TfCnnLogOptions {
  SpeedOptions speed{};
  double global_batch = 1;                // for the total throughput
  bool base_loss = false;                 // the loss column excludes the L2 term
  bool accuracies = false;                // training accuracy columns
  bool trains = true;                     // false: evaluation or forward only
  bool ends_with_evaluation = false;      // then the training has no footer
  std::optional<double> stop_at_top_1{};  // for its log line
  std::string weights_line{};             // printed at a fresh start; empty: no such line
  cli::Machine machine{};
  bool sums = false;               // gradients are all-reduced
  bool cuda_graph = false;         // steps run as CUDA graphs, in which all-reduces are not timed
  double flops = 0;                // of this rank's step
  std::function<double()> peak{};  // peak FLOP/s of a CPU; none: not printed
  bool stated_peak = false;        // given by the user
  uint64_t eta_of = 0;             // step lines end with the estimated time until this step; 0: off
};

// Warm-up steps are not displayed; step numbers count from the end of the warm-up. A run resumed after its warm-up has
// none.
class TfCnnLog final : public Observer {
 public:
  // All arguments outlive the log.
  TfCnnLog(cli::Log& log, TfCnnLogOptions options, Context& context, const Communicator& communicator)
      : log_(log),
        options_(std::move(options)),
        context_(context),
        communicator_(communicator),
        statistics_(options_.speed) {}

  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluating(const Evaluating& event) override;
  void evaluated(const Evaluated& event) override;
  void noticed(const Noticed& event) override { log_.notice(event.text); }
  void ended(const Ended& event) override;

 private:
  void columns();
  void total(double images_per_sec);
  void summary();
  void summary_of_step();
  void summary_of_cpu(double seconds);
  void summary_of_sums();

  cli::Log& log_;
  const TfCnnLogOptions options_;
  Context& context_;
  const Communicator& communicator_;
  StepStatistics statistics_;
  bool done_ = false;  // with training
  std::chrono::steady_clock::time_point evaluation_shown_;
};

}  // namespace dtrain::observers
