#include "libdtrain/distributed/nccl_watchdog.h"

namespace dtrain::nccl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

GpuWatchdog::GpuWatchdog(Group& group, Context& context, Comm& comm)
    : group_(group), context_(context), comm_(comm), thread_([this] { run(); }) {}

GpuWatchdog::~GpuWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void GpuWatchdog::add(const Event& end) {
  const std::lock_guard lock(mutex_);
  if (steps_.empty()) front_since_ = Clock::now();
  steps_.push_back({end, group_.limit(), group_.where()});
}

std::string GpuWatchdog::look(std::unique_lock<std::mutex>& lock) {
  while (!steps_.empty()) {
    const Event end = steps_.front().end;
    lock.unlock();  // the device may respond slowly; only this thread removes steps
    const bool past = context_.is_past(end);
    lock.lock();
    if (!past) break;
    steps_.pop_front();
    front_since_ = Clock::now();
  }
  if (steps_.empty()) return "";
  const Step& step = steps_.front();
  const double waited = waited_since(front_since_);
  if (waited < step.limit) return "";
  return concat(step.where, " was enqueued on its GPU ", waited, " s ago and has not completed, limit ", step.limit,
                " s: ");
}

void GpuWatchdog::run() try {
  DT_CUDA(cudaSetDevice(context_.device().index));
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPause, [this] { return stopping_; })) {
    std::string report = look(lock);
    if (!report.empty()) {
      const std::string peers = group_.ask_peers();
      report += peers.empty() ? "a peer is stopped, cut off or out of step" : peers;
    } else {
      report = comm_.trouble();
      if (!report.empty() && !steps_.empty()) report = concat("NCCL, in ", steps_.front().where, ": ", report);
    }
    if (report.empty()) continue;
    comm_.abort();
    group_.fail(concat(group_.name(group_.rank()), ": ", report));
  }
} catch (const Error&) {
  // The device has failed: waiting callers are notified themselves.
}

}  // namespace dtrain::nccl
