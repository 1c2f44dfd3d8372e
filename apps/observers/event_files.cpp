#include "apps/observers/event_files.h"

#include <chrono>

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

void EventFiles::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    notice_(fmt::format("{}; the run goes on without TensorBoard's events", error.what()));
    file_.reset();
  }
}

void EventFiles::begun(const Begun& event) {
  const auto first_step = options_.trains ? std::optional(event.step + 1) : std::nullopt;
  if (!event.complete) attempt([&] { file_.emplace(options_.file, first_step, now()); });
}

void EventFiles::put(uint64_t step, const std::vector<MetricValue>& scalars) {
  if (!file_ || scalars.empty()) return;
  Summary summary;
  for (const MetricValue& scalar : scalars) summary.scalar(scalar.name, scalar.value);
  attempt([&] { file_->add(step, now(), summary); });
}

void EventFiles::stepped(const Stepped& event) {
  if (event.shown) l2_loss_ = event.l2_loss;
  if (options_.every > 0 ? event.step % options_.every == 0 : event.shown)
    put(event.step, scalars_of(event, l2_loss_, options_.tags));
}

void EventFiles::evaluated(const Evaluated& event) {
  put(event.step, tagged(options_.evaluation_tags, event.result.values));
}

// Steps before a checkpoint are never made again.
void EventFiles::saved(const Saved&) {
  if (file_) attempt([&] { file_->flush(); });
}

void EventFiles::ended(const Ended&) {
  if (file_) attempt([&] { file_->flush(); });
}

}  // namespace dtrain::observers
