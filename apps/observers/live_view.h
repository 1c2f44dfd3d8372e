// What people can look at while a training runs: a block of lines on the terminal, and metrics over HTTP.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/live_block.h"
#include "apps/cli/log.h"
#include "apps/cli/options/display.h"
#include "apps/observers/metrics_endpoint.h"
#include "apps/observers/progress_block.h"
#include "libdtrain/core/context.h"

namespace dtrain::observers {

struct LiveViewOptions {
  std::string program, model;
  int ranks = 1;
  FigureOptions figures{};
};

// As far as the flags ask for it. For the chief of a training alone.
class LiveView {
 public:
  // `log` prints above the block; it and `context` outlive this. Throws as MetricsEndpoint does.
  LiveView(const cli::DisplayFlags& flags, const LiveViewOptions& options, const Context& context, cli::Log& log);
  ~LiveView() { log_.print_above(nullptr); }
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  std::vector<Observer*> all();

 private:
  cli::Log& log_;
  std::optional<MetricsEndpoint> endpoint_;
  std::optional<cli::LiveBlock> block_;
  std::optional<ProgressBlock> progress_;
};

}  // namespace dtrain::observers
