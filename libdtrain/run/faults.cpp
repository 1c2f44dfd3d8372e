// Parsing and injection of faults.
#include "libdtrain/run/faults.h"

#ifdef DTRAIN_FAULTS
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <thread>

#include <unistd.h>
#endif

namespace dtrain {

#ifdef DTRAIN_FAULTS
namespace {

constexpr std::pair<const char*, FaultKind> kKinds[] = {
    {"kill", FaultKind::kill},       {"kill_evaluated", FaultKind::kill_evaluated},
    {"hang", FaultKind::hang},       {"exception", FaultKind::exception},
    {"nan", FaultKind::nan},         {"slow", FaultKind::slow},
    {"bitflip", FaultKind::bitflip}, {"skip_collective", FaultKind::skip_collective}};

[[noreturn]] void refuse(const std::string& text) {
  throw Error(Fault::config,
              concat("DTRAIN_FAULT: '", text,
                     "': expected e.g. rank=1,step=7,kind=kill, with kind kill, kill_evaluated, hang, exception, nan, "
                     "bitflip, skip_collective, or slow and seconds=S or factor=F"));
}

FaultKind kind_of(const std::string& name) {
  for (const auto& [known, kind] : kKinds)
    if (name == known) return kind;
  refuse(name);
}

template <typename T>
T number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) refuse(text);
  return value;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (char c : text) c == at ? void(parts.emplace_back()) : parts.back().push_back(c);
  return parts;
}

PlannedFault parse_fault(const std::string& text) {
  PlannedFault fault;
  bool has_rank = false, has_kind = false;
  for (const std::string& field : split(text, ',')) {
    const size_t equals = std::min(field.find('='), field.size());
    const std::string name = field.substr(0, equals), value = field.substr(std::min(equals + 1, field.size()));
    if (name == "rank") {
      fault.rank = number<int>(value);
      has_rank = true;
    } else if (name == "step") {
      fault.step = number<uint64_t>(value);
    } else if (name == "kind") {
      fault.kind = kind_of(value);
      has_kind = true;
    } else if (name == "seconds") {
      fault.seconds = number<double>(value);
    } else if (name == "factor") {
      fault.factor = number<double>(value);
    } else {
      refuse(field);
    }
  }
  if (!has_rank || !has_kind || fault.step == 0) refuse(text);
  return fault;
}

std::vector<PlannedFault> parse_faults(const std::string& text) {
  std::vector<PlannedFault> faults;
  for (const std::string& one : split(text, ';')) faults.push_back(parse_fault(one));
  return faults;
}

bool is_of_sums(FaultKind kind) { return kind == FaultKind::nan || kind == FaultKind::skip_collective; }

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Changes a weight by 1e-4: too little to affect the loss visibly.
void flip_bit(ParameterStore& store) {
  const Tensor weight = store.parameters().front().value.view({store.parameters().front().shape.count()}).slice(0, 1);
  Context& context = store.context();
  float value = 0;
  context.download(weight, &value, "a weight");
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits ^= 1u << 10;
  std::memcpy(&value, &bits, sizeof bits);
  context.upload(&value, weight);
  store.refresh_compute();
}

// Skips an all-reduce, or injects a NaN.
class FaultyCommunicator : public Communicator {
 public:
  FaultyCommunicator(std::unique_ptr<Communicator> inner, Faults& faults, Context& context)
      : Communicator(inner->group(), inner->options()), inner_(std::move(inner)), faults_(faults), context_(context) {}

  void all_reduce(std::span<const Tensor> ranges, const std::string& what, bool exact) override {
    if (faults_.take(FaultKind::skip_collective)) return;
    if (faults_.take(FaultKind::nan)) {
      const float poison = std::numeric_limits<float>::quiet_NaN();
      context_.upload(&poison, ranges.front().view({ranges.front().count()}).slice(0, 1));
    }
    inner_->all_reduce(ranges, what, exact);
  }
  void broadcast(const Tensor& x, int root, const std::string& what) override { inner_->broadcast(x, root, what); }
  void on_all_reduce(std::function<void(const AllReduceReport&)> hear) override {
    inner_->on_all_reduce(std::move(hear));
  }
  void join() override { inner_->join(); }
  void watch(const Event& end) override { inner_->watch(end); }
  std::string describe() const override { return inner_->describe(); }
  CommunicatorTimes take_times() override { return inner_->take_times(); }

 private:
  std::unique_ptr<Communicator> inner_;
  Faults& faults_;
  Context& context_;
};

}  // namespace

Faults::Faults(const std::string& text, int rank, int size) {
  if (text.empty()) return;
  for (const PlannedFault& fault : parse_faults(text)) {
    DT_CHECK(fault.rank < size, "DTRAIN_FAULT: rank ", fault.rank, ": the job has ", size, " ranks");
    DT_CHECK(size > 1 || !is_of_sums(fault.kind),
             "DTRAIN_FAULT: nan and skip_collective are for several ranks; this job has one");
    if (fault.rank == rank) planned_.push_back(fault);
  }
}

std::unique_ptr<Communicator> Faults::around(std::unique_ptr<Communicator> communicator, Context& context) {
  if (planned_.empty()) return communicator;
  return std::make_unique<FaultyCommunicator>(std::move(communicator), *this, context);
}

bool Faults::breaks_all_reduce(uint64_t step) const {
  return std::ranges::any_of(planned_, [&](const PlannedFault& f) { return f.step == step && is_of_sums(f.kind); });
}

bool Faults::take(FaultKind kind) {
  return std::erase_if(planned_, [&](const PlannedFault& f) { return f.kind == kind && f.step == step_; }) > 0;
}

void Faults::begin_step(uint64_t step, ParameterStore& store) {
  step_ = step;
  if (take(FaultKind::kill)) std::raise(SIGKILL);
  if (take(FaultKind::exception)) throw Error(Fault::data, concat("step ", step, ": an injected fault"));
  if (take(FaultKind::bitflip)) flip_bit(store);
  if (take(FaultKind::hang))
    while (true) pause();
  for (const PlannedFault& fault : planned_)
    if (fault.kind == FaultKind::slow && step >= fault.step && fault.factor == 0) sleep_for(fault.seconds);
}

void Faults::evaluated(uint64_t step) {
  for (const PlannedFault& fault : planned_)
    if (fault.kind == FaultKind::kill_evaluated && fault.step == step) std::raise(SIGKILL);
}

void Faults::end_step(double seconds) {
  for (const PlannedFault& fault : planned_)
    if (fault.kind == FaultKind::slow && step_ >= fault.step && fault.factor > 1)
      sleep_for((fault.factor - 1) * seconds);
}

#else
Faults::Faults(const std::string& text, int, int) {
  DT_CHECK(text.empty(), "DTRAIN_FAULT='", text, "': built without fault injection; configure with -DDTRAIN_FAULTS=ON");
}

std::unique_ptr<Communicator> Faults::around(std::unique_ptr<Communicator> communicator, Context&) {
  return communicator;
}

void Faults::begin_step(uint64_t, ParameterStore&) {}
void Faults::evaluated(uint64_t) {}
void Faults::end_step(double) {}
bool Faults::breaks_all_reduce(uint64_t) const { return false; }
bool Faults::take(FaultKind) { return false; }
#endif

}  // namespace dtrain
