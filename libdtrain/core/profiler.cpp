#include "dtrain/core/profiler.h"

#include "dtrain/core/context.h"

namespace dtrain {

std::string WorkRecord::layer() const {
  return parameters.empty() ? "" : parameters.front().substr(0, parameters.front().rfind('.'));
}

Profiler::~Profiler() {
  if (attached_) context_.set_profiler(nullptr);
}

Event Profiler::now() const { return context_.record(); }

void Profiler::begin_step(const std::string& name) {
  DT_CHECK(context_.profiler() == nullptr, "profiler: another profiler is attached to this context");
  context_.synchronize("profiler");
  if (entries_.empty()) {
    origin_ = now();
    host_origin_ = std::chrono::steady_clock::now();
  }
  thread_ = std::this_thread::get_id();
  attached_ = true;
  context_.set_profiler(this);
  open(WorkLevel::step, name);
  phase("input");
}

void Profiler::end_step() {
  if (!attached_) return;
  close_to(0);
  phase_.clear();  // the next step begins without one
  attached_ = false;
  context_.set_profiler(nullptr);
}

void Profiler::open(WorkLevel level, const std::string& name) {
  Entry entry;
  entry.record.level = level;
  entry.record.depth = static_cast<int>(open_.size());
  entry.record.name = name;
  entry.record.phase = phase_;
  entry.begin = now();
  open_.push_back(entries_.size());
  entries_.push_back(std::move(entry));
}

void Profiler::close_to(size_t depth) {
  if (open_.size() <= depth) return;
  const Event end = now();
  for (; open_.size() > depth; open_.pop_back()) entries_[open_.back()].end = end;
}

void Profiler::phase(const char* name) {
  if (!observes()) return;
  close_to(1);
  phase_ = name == nullptr ? "" : name;
  if (name != nullptr) open(WorkLevel::phase, name);
  between_ops();
}

void Profiler::between_ops() {
  if (!observes()) return;
  unclaimed_ = entries_.size();
  between_ = now();
}

void Profiler::name_parameter(const Tensor& compute, const std::string& name) {
  if (observes()) parameters_.insert_or_assign(compute.raw(), name);
}

int64_t Profiler::end_forward(const Op& op) {
  if (!observes()) return -1;
  Entry entry;
  WorkRecord& record = entry.record;
  record.depth = static_cast<int>(open_.size());
  record.name = op.name;
  record.phase = phase_;
  record.flops = op.flops;
  record.output = op.output.shape();
  record.bytes = static_cast<double>(op.output.bytes());
  for (const Tensor& input : op.inputs) {
    if (!input) continue;
    record.inputs.push_back(input.shape());
    record.bytes += static_cast<double>(input.bytes());
    if (const auto named = parameters_.find(input.raw()); named != parameters_.end())
      record.parameters.push_back(named->second);
  }
  entry.begin = between_;
  entry.end = now();
  for (size_t i = unclaimed_; i < entries_.size(); ++i) ++entries_[i].record.depth;
  const size_t number = unclaimed_;
  entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(number), std::move(entry));
  between_ops();
  return static_cast<int64_t>(number);
}

void Profiler::begin_backward(const char* op, int64_t number, int gradients) {
  if (!observes()) return;
  open(WorkLevel::op, op);
  if (number < 0 || static_cast<size_t>(number) >= entries_.size()) return;
  const WorkRecord& forward = entries_[static_cast<size_t>(number)].record;
  WorkRecord& backward = entries_.back().record;
  backward.parameters = forward.parameters;
  backward.inputs = forward.inputs;
  backward.output = forward.output;
  backward.flops = forward.flops * gradients;
  backward.bytes = 2 * forward.bytes;  // reads each once more, and reads or writes a gradient of each size
}

void Profiler::begin_kernel(const char* name) {
  if (observes()) open(WorkLevel::kernel, name);
}

void Profiler::end() {
  if (observes() && !open_.empty()) close_to(open_.size() - 1);
}

std::vector<WorkRecord> Profiler::take() {
  DT_CHECK(!attached_, "profiler: take() called within a step");
  context_.synchronize("profiler");
  std::vector<WorkRecord> records;
  for (Entry& entry : entries_) {
    const std::chrono::duration<double> since(context_.seconds_between(origin_, entry.begin));
    entry.record.begin = host_origin_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(since);
    entry.record.seconds = context_.seconds_between(entry.begin, entry.end);
    records.push_back(std::move(entry.record));
  }
  entries_.clear();
  parameters_.clear();
  return records;
}

}  // namespace dtrain
