// Telemetry of a training program, as requested by its flags: metrics file, TensorBoard events, live view and trace.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/log.h"
#include "apps/cli/options/training.h"
#include "apps/observers/event_files.h"
#include "apps/observers/json_lines.h"
#include "apps/observers/live_view.h"
#include "apps/observers/tracing.h"

namespace dtrain::observers {

struct TelemetryOptions {
  std::string program{}, model{};  // names for the live view and the trace
  FigureOptions figures{};         // of the metrics file
  std::optional<EventFilesOptions> events{};
  uint64_t total_steps = 0;
  DType precision = DType::f32;
  bool trains = true;  // false: no live view
};

// On the chief only.
class Telemetry {
 public:
  // `context` and `log` outlive this. Throws like LiveView and Tracing.
  Telemetry(const cli::TrainingFlags& flags, const TelemetryOptions& options, Context& context,
            Communicator& communicator, cli::Log& log);

  // Adds histograms and images to event files, if there are any.
  void show(StepDetails details) {
    if (events_) events_->show(std::move(details));
  }
  // Null without event files.
  EventFiles* events() { return events_ ? &*events_ : nullptr; }
  // For spans of other threads; null without a trace.
  std::function<void(const TraceSpan&)> span_listener() const;
  // In notification order.
  std::vector<Observer*> all();

 private:
  std::optional<JsonLines> metrics_;
  std::optional<EventFiles> events_;
  std::optional<LiveView> live_;
  std::optional<Tracing> tracing_;
};

}  // namespace dtrain::observers
