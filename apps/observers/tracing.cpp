#include "apps/observers/tracing.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/observers/trace_spans.h"
#include "apps/observers/trace_tables.h"
#include "dtrain/ops/peaks.h"
#include "libdtrain/io/result_file.h"

namespace dtrain::observers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kProfiledSteps = 10;
constexpr size_t kPrintedRows = 20;

}  // namespace

TracingOptions tracing_options(const cli::TracingFlags& flags, DType compute_type, cli::Log& log) {
  return {.trace_file = flags.trace_file,
          .profile_file = flags.tfprof_file,
          .roofline_file = flags.profile,
          .timeline = flags.timeline,
          .chrome_format = flags.use_chrome_trace_format,
          .compute_type = compute_type,
          .line = [&log](const std::string& text) { log.line(text); },
          .notice = [&log](const std::string& text) { log.notice(text); }};
}

struct Tracing::Heard {
  std::mutex mutex;
  bool listens = false;  // the traced step is running
  std::vector<TraceSpan> spans;
  std::optional<TraceFile> timeline;

  void add(const TraceSpan& span) {
    const std::lock_guard lock(mutex);
    if (listens) spans.push_back(span);
  }
};

Tracing::Tracing(TracingOptions options, Context& context)
    : options_(std::move(options)), context_(context), profiler_(context), heard_(std::make_shared<Heard>()) {
  if (!options_.timeline.empty()) heard_->timeline.emplace(options_.timeline, options_.process);
}

Tracing::~Tracing() {
  if (heard_->timeline) heard_->timeline->close();
}

void Tracing::listen_to(Communicator& communicator) const {
  communicator.on_all_reduce([heard = heard_](const AllReduceReport& sum) {
    for (const TraceSpan& span : spans_of(sum)) {
      heard->add(span);
      if (heard->timeline) heard->timeline->add(span);
    }
  });
}

std::function<void(const TraceSpan&)> Tracing::span_listener() const {
  return [heard = heard_](const TraceSpan& span) { heard->add(span); };
}

void Tracing::begun(const Begun& event) {
  if (event.complete) return;
  const uint64_t first = event.step + 1, timed = std::max(options_.warmup_steps + 1, first);
  if (!context_.is_cpu() &&
      !(options_.trace_file.empty() && options_.profile_file.empty() && options_.roofline_file.empty()))
    options_.notice("traced and profiled steps run eagerly, op by op, not as CUDA graphs");
  if (!options_.trace_file.empty()) {
    traced_ = options_.warmup_steps - 1;
    if (options_.warmup_steps < 2 || traced_ < first) {
      traced_ = std::min(first + 1, options_.total_steps);
      options_.notice(
          fmt::format("--trace_file: fewer than two warm-up steps are left; tracing step {} instead", traced_));
    }
  }
  if (!options_.roofline_file.empty()) measure_roofs();
  if (options_.profile_file.empty() && !roofs_) return;
  first_profiled_ = timed;
  last_profiled_ = std::min(timed + kProfiledSteps - 1, options_.total_steps);
}

// Missing requirements do not end the run.
void Tracing::measure_roofs() {
  try {
    roofs_ = {.flops = measure_peak_flops(context_, options_.compute_type), .bytes = measure_peak_bandwidth(context_)};
  } catch (const std::exception& error) {
    options_.notice(
        fmt::format("--profile: the peaks cannot be measured: {}; the run goes on without it", error.what()));
  }
}

void Tracing::stepping(uint64_t step) {
  end_step();
  if (step != traced_ && !profiles(step)) return;
  step_ = step;
  profiler_.begin_step(fmt::format("step {}", step));
  if (step != traced_) return;
  const std::lock_guard lock(heard_->mutex);
  heard_->listens = true;
}

void Tracing::end_step() {
  if (!profiler_.attached()) return;
  profiler_.end_step();
  std::vector<WorkRecord> records = profiler_.take();
  if (profiles(step_)) profiled_.insert(profiled_.end(), records.begin(), records.end());
  if (step_ == traced_) write_trace(std::move(records));
  if (!profiled_.empty() && step_ == last_profiled_) write_profile();
}

void Tracing::stepped(const Stepped& event) {
  if (event.step == step_) end_step();
  show("steps", fmt::format("step {}", event.step), event.seconds);
  if (!heard_->timeline) return;
  if (const std::string failure = heard_->timeline->take_failure(); !failure.empty())
    options_.notice(failure + "; the run goes on without a timeline");
}

void Tracing::ended(const Ended&) {
  end_step();
  if (!profiled_.empty()) write_profile();  // of fewer steps
}

void Tracing::evaluated(const Evaluated& event) {
  show("evaluations", fmt::format("evaluation after step {}", event.step), event.result.seconds);
}

void Tracing::saved(const Saved& event) {
  show("checkpoints", fmt::format("checkpoint of step {}", event.report.step), event.report.seconds);
}

// The span that has just ended.
void Tracing::show(const std::string& lane, const std::string& name, double seconds) {
  if (!heard_->timeline) return;
  const Clock::time_point now = Clock::now();
  heard_->timeline->add(
      {.lane = lane,
       .name = name,
       .begin = now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)),
       .end = now});
}

void Tracing::attempt(const std::function<void()>& write) const {
  try {
    write();
  } catch (const Error& error) {
    options_.notice(fmt::format("{}; the run goes on without it", error.what()));
  }
}

void Tracing::write_trace(std::vector<WorkRecord> records) {
  std::vector<TraceSpan> spans;
  for (const WorkRecord& record : records) spans.push_back(span_of(record));
  {
    const std::lock_guard lock(heard_->mutex);
    heard_->listens = false;
    std::ranges::stable_sort(heard_->spans, {}, &TraceSpan::lane);
    for (TraceSpan& span : heard_->spans) {
      span.begin = std::max(span.begin, spans.front().begin);  // a wait may start before the step
      spans.push_back(std::move(span));
    }
    heard_->spans.clear();
  }
  options_.line("Dumping trace to " + options_.trace_file);
  attempt([&] {
    if (!options_.chrome_format) return write_text(options_.trace_file, spans);
    TraceFile file(options_.trace_file, options_.process, spans.front().begin);
    for (const TraceSpan& span : spans) file.add(span);
    file.close();
    if (const std::string failure = file.take_failure(); !failure.empty()) throw Error(Fault::resource, failure);
  });
}

void Tracing::write_profile() {
  if (!options_.profile_file.empty()) {
    for (const std::string& line : profile_lines(profiled_, false, kPrintedRows)) options_.line(line);
    attempt([&] { write_lines(options_.profile_file, whole_profile(profiled_)); });
  }
  if (roofs_) {
    for (const std::string& line : roofline_table(profiled_, *roofs_)) options_.line(line);
    attempt([&] { write_lines(options_.roofline_file, {roofline_svg(profiled_, *roofs_)}); });
  }
  profiled_.clear();
}

}  // namespace dtrain::observers
