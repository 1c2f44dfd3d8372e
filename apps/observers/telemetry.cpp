#include "apps/observers/telemetry.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace dtrain::observers {

Telemetry::Telemetry(const cli::TrainingFlags& flags, const TelemetryOptions& options, Context& context,
                     Communicator& communicator, cli::Log& log) {
  const Group& group = communicator.group();
  const auto notice = [&log](const std::string& text) { log.notice(text); };
  if (!flags.display.metrics_file.empty()) metrics_.emplace(flags.display.metrics_file, options.figures, notice);
  if (options.events) events_.emplace(*options.events, notice);
  if (options.trains) {
    LiveViewOptions live{
        .program = options.program, .model = options.model, .ranks = group.size(), .figures = options.figures};
    live.figures.total_steps = options.total_steps;
    live_.emplace(flags.display, live, context, log);
  }
  if (!flags.tracing.wanted()) return;
  TracingOptions tracing = tracing_options(flags.tracing, options.precision, log);
  tracing.process = fmt::format("{}, {}", options.program, group.name(group.rank()));
  tracing.warmup_steps = options.figures.speed.warmup_steps;
  tracing.total_steps = options.total_steps;
  tracing_.emplace(std::move(tracing), context).listen_to(communicator);
}

std::function<void(const TraceSpan&)> Telemetry::span_listener() const {
  return tracing_ ? tracing_->span_listener() : nullptr;
}

std::vector<Observer*> Telemetry::all() {
  std::vector<Observer*> observers;
  if (metrics_) observers.push_back(&*metrics_);
  if (events_) observers.push_back(&*events_);
  if (tracing_) observers.push_back(&*tracing_);
  if (live_) std::ranges::copy(live_->all(), std::back_inserter(observers));
  return observers;
}

}  // namespace dtrain::observers
