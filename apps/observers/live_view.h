// Live views of a training: a progress block on the terminal, and metrics over HTTP.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/live_block.h"
#include "apps/cli/log.h"
#include "apps/cli/options/display.h"
#include "apps/observers/metrics_endpoint.h"
#include "apps/observers/progress_block.h"
#include "dtrain/core/context.h"

namespace dtrain::observers {

struct LiveViewOptions {
  std::string program, model;
  int ranks = 1;
  FigureOptions figures{};
};

// As requested by flags. On the chief only.
class LiveView {
 public:
  // `log` prints above the block; it and `context` outlive this. Throws like MetricsEndpoint.
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
