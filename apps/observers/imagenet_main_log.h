// The log of a run as MLPerf's reference for ResNet prints it under TensorFlow, in the form that Intel's scripts read.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/log.h"
#include "apps/observers/log_interval.h"

namespace dtrain::observers {

struct ImagenetMainLogOptions {
  double global_batch = 1;            // images of a step, over all ranks
  double samples = 1;                 // images of an epoch
  std::optional<double> threshold{};  // the top-1 accuracy that a run has to reach to be a success
};

// Tags of MLPerf v0.5, and TensorFlow's lines `loss = L, step = N` and `global_step/sec: S`, of shown steps. As there,
// the first step has the number 0, and the loss has the L2 term in it.
class ImagenetMainLog final : public Observer {
 public:
  // `log` outlives it.
  ImagenetMainLog(cli::Log& log, ImagenetMainLogOptions options) : log_(log), options_(std::move(options)) {}

  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluating(const Evaluating& event) override;
  void evaluated(const Evaluated& event) override;
  void noticed(const Noticed& event) override { log_.notice(event.text); }
  void ended(const Ended& event) override;

 private:
  void begin_cycle(uint64_t step);
  void stop();
  double epochs(uint64_t step) const { return static_cast<double>(step) * options_.global_batch / options_.samples; }

  cli::Log& log_;
  const ImagenetMainLogOptions options_;
  LogInterval interval_;
  bool first_ = true, done_ = false, success_ = false;
};

}  // namespace dtrain::observers
