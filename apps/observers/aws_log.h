// The log of a run as AWS's train_imagenet_resnet_hvd.py prints it.
#pragma once

#include <chrono>
#include <string>

#include "apps/cli/log.h"
#include "apps/observers/log_interval.h"

namespace dtrain::observers {

struct AwsLogOptions {
  std::string log_file;      // a copy of the log
  bool new_file = false;     // which takes the place of an older one
  std::string checkpoints;   // the folder of what is evaluated
  double global_batch = 1;   // images of a step, over all ranks
  double samples = 1;        // images of an epoch
  double trained_batch = 1;  // the global batch of the run that is evaluated: for its epochs
  int ranks = 1;
};

// A line for each shown step: its number and epoch, the images per second of all ranks since the line before, the loss
// without and with the L2 term, and the learning rate. An evaluation is a line of a table, printed once it is done.
class AwsLog final : public Observer {
 public:
  // `log` outlives it, and has no copy yet.
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
