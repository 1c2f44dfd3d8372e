// Log in the format of MLPerf's ResNet reference under TensorFlow, for Intel's scripts.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/log.h"
#include "apps/observers/log_interval.h"

namespace dtrain::observers {

struct ImagenetMainLogOptions {
  double global_batch = 1;            // global batch size
  double samples = 1;                 // images per epoch
  std::optional<double> threshold{};  // target top-1 accuracy
};

// Prints MLPerf v0.5 tags, and TensorFlow's lines `loss = L, step = N` and `global_step/sec: S` for displayed steps. As
// in the reference, steps count from 0, and the loss includes the L2 term.
class ImagenetMainLog final : public Observer {
 public:
  // `log` outlives this.
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
