// Log in the format of AWS's train_imagenet_resnet_hvd.py.
#pragma once

#include <chrono>
#include <string>

#include "apps/cli/log.h"
#include "apps/observers/log_interval.h"

namespace dtrain::observers {

struct AwsLogOptions {
  std::string log_file;      // a copy of the log
  bool new_file = false;     // overwrites an older one
  std::string checkpoints;   // folder of the evaluated checkpoints
  double global_batch = 1;   // global batch size
  double samples = 1;        // images per epoch
  double trained_batch = 1;  // global batch size of the evaluated run, for its epochs
  int ranks = 1;
};

// A line per displayed step: step, epoch, images per second of all ranks since the previous line, loss without and with
// the L2 term, and learning rate. An evaluation is a table row.
class AwsLog final : public Observer {
 public:
  // `log` outlives this, and is not yet copied to a file.
  AwsLog(cli::Log& log, AwsLogOptions options);
  ~AwsLog() override;

  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluating(const Evaluating& event) override;
  void evaluated(const Evaluated& event) override;
  void noticed(const Noticed& event) override { log_.notice(event.text); }
  void ended(const Ended& event) override;

 private:
  void open();

  cli::Log& log_;
  const AwsLogOptions options_;
  cli::LineFile file_;
  bool opened_ = false;
  LogInterval interval_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace dtrain::observers
