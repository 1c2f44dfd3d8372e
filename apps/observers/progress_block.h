// Live progress display of a training at the bottom of the terminal.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "apps/cli/live_block.h"
#include "apps/observers/step_figures.h"
#include "dtrain/core/memory.h"

namespace dtrain::observers {

struct ProgressBlockOptions {
  std::string what;  // model name: "resnet50"
  int ranks = 1;
  FigureOptions figures{};
  std::function<MemoryStats()> memory{};  // peak FLOP/s of the device
};

class ProgressBlock final : public Observer {
 public:
  // `block` outlives this.
  ProgressBlock(ProgressBlockOptions options, cli::LiveBlock& block);

  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluating(const Evaluating& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;
  void ended(const Ended& event) override;

  // Lines for this number of columns.
  std::vector<std::string> lines(int columns) const;

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  std::string bar_line(int columns) const;
  std::string sparkline(size_t columns) const;

  const ProgressBlockOptions options_;
  cli::LiveBlock& block_;
  StepFigures figures_;
  Clock::time_point drawn_{};
  Stepped last_{};
  double images_per_second_ = 0, wait_share_ = 0;
  std::deque<double> speeds_;  // of the last displayed steps
  std::string activity_, evaluation_, checkpoint_;
};

}  // namespace dtrain::observers
