// The log of a run, line for line as tf_cnn_benchmarks prints it, so that what reads those logs reads ours.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "apps/cli/log.h"
#include "apps/cli/machine.h"
#include "apps/observers/step_statistics.h"
#include "libdtrain/distributed/communicator.h"

namespace dtrain::observers {

struct TfCnnLogOptions {
  SpeedOptions speed{};
  double global_batch = 1;                // for the speed of the whole run
  bool base_loss = false;                 // the loss column leaves out the L2 term
  bool accuracies = false;                // columns of the training accuracy
  bool trains = true;                     // false: only evaluates, or runs forward only
  bool ends_with_evaluation = false;      // then the training has no footer
  std::optional<double> stop_at_top_1{};  // for the line that says so
  std::string weights_line{};             // printed where the run starts afresh; empty: no such line
  cli::Machine machine{};
  bool sums = false;               // gradients are summed over ranks
  bool cuda_graph = false;         // a GPU's steps are replayed, whose sums are not timed
  double flops = 0;                // that a step of this rank takes
  std::function<double()> peak{};  // operations per second that a CPU can do; none: it is not printed
  bool stated_peak = false;        // the user said so
  uint64_t eta_of = 0;             // lines of steps tell the time that is left until this one; 0: they do not
};

// Steps of the warm-up are run and not shown; the number of a printed step counts from the end of the warm-up. A run
// that is continued after its warm-up has none.
class TfCnnLog final : public Observer {
 public:
  // What is given outlives the log.
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
