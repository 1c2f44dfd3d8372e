#include "apps/observers/live_view.h"

#include <fmt/format.h>

#include "apps/cli/run_main.h"

namespace dtrain::observers {

LiveView::LiveView(const cli::DisplayFlags& flags, const LiveViewOptions& options, const Context& context,
                   cli::Log& log)
    : log_(log) {
  const auto memory = [&context] { return context.memory_stats(); };
  if (flags.metrics_port) {
    endpoint_.emplace(MetricsEndpointOptions{.address = flags.metrics_address,
                                             .port = static_cast<uint16_t>(*flags.metrics_port),
                                             .figures = options.figures,
                                             .labels = {{"program", options.program},
                                                        {"version", cli::version()},
                                                        {"model", options.model},
                                                        {"ranks", fmt::format("{}", options.ranks)},
                                                        {"device", context.is_cpu() ? "cpu" : "gpu"}},
                                             .memory = memory});
    log.notice("metrics are at " + endpoint_->url());
  }
  if (!flags.progress) return;
  block_.emplace();
  if (!block_->drawn()) return;
  log.print_above(&*block_);
  FigureOptions figures = options.figures;
  figures.flops = 0;  // the block shows no utilisation, because the peak would have to be measured
  progress_.emplace(
      ProgressBlockOptions{.what = options.model, .ranks = options.ranks, .figures = figures, .memory = memory},
      *block_);
}

std::vector<Observer*> LiveView::all() {
  std::vector<Observer*> observers;
  if (endpoint_) observers.push_back(&*endpoint_);
  if (progress_) observers.push_back(&*progress_);
  return observers;
}

}  // namespace dtrain::observers
