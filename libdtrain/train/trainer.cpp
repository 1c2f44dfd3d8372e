#include "dtrain/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libdtrain/io/crc32c.h"
#include "libdtrain/ops/step_metrics.h"
#include "libdtrain/train/agreement.h"
#include "libdtrain/train/running_statistics.h"

namespace dtrain {
namespace {

double sum_of_squares(Context& context, const Tensor& x) {
  std::vector<float> values(static_cast<size_t>(x.count()));
  context.download(x, values.data(), "worst_parameter");
  double sum = 0;
  for (float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

// Intersection of `names` and `others`, both in registration order.
void keep_common(std::vector<std::string>& names, const std::vector<std::string>& others) {
  std::erase_if(names, [&](const std::string& name) { return std::ranges::find(others, name) == others.end(); });
}

std::vector<GradientRange> gradient_ranges(const ParameterStore& store) {
  std::vector<GradientRange> ranges;
  for (const Parameter& parameter : store.parameters())
    ranges.push_back({{parameter.offset, parameter.offset + parameter.value.count()}, !parameter.options().frozen});
  return ranges;
}

// Settings that must be equal on all ranks.
RankSettings settings_of(const ParameterStore& store, const Optimizer& optimizer, const Schedule& schedule,
                         const TrainerOptions& options) {
  std::string parameters;
  for (const Parameter& parameter : store.parameters()) {
    const ParameterOptions& of = parameter.options();
    parameters += concat(parameter.name, " ", parameter.shape, of.frozen ? " frozen " : " ", of.decay ? "decayed " : "",
                         of.multipliers.rate, " ", of.multipliers.weight_decay, "\n");
  }
  return {
      {"the seed", std::to_string(options.seed)},
      {"the number of micro-steps", std::to_string(options.micro_steps)},
      {"the schedule", schedule.describe()},
      {"the update", optimizer.describe()},
      {"the checksum of the parameters' names, shapes, freezing, decay and multipliers",
       std::to_string(crc32c(parameters.data(), parameters.size()))},
      {"the order of additions", options.communicator->describe()},
      {"the size of gradient buckets", concat(options.buckets.bytes, " bytes, the last ", options.buckets.last_bytes)}};
}

Tensor host_tensor(Context& context, Shape shape) {
  const auto bytes = static_cast<size_t>(shape.count()) * sizeof(float);
  return Tensor(std::make_shared<Storage>(context.host_allocator(), bytes), 0, shape, DType::f32, Device{});
}

}  // namespace

Trainer::Trainer(ParameterStore& store, Optimizer& optimizer, Schedule schedule, TrainerOptions options)
    : store_(store, "a Trainer is used after its ParameterStore has been destroyed; expected one that outlives it"),
      optimizer_(optimizer, "a Trainer is used after its Optimizer has been destroyed; expected one that outlives it"),
      schedule_(std::move(schedule)),
      options_(options),
      statistics_(std::make_shared<RunningStatistics>(store, options.micro_steps)),
      layout_version_(store.layout_version()) {
  DT_CHECK(&optimizer.store() == &store, "trainer: the optimizer updates the parameters of another store");
  DT_CHECK(options.micro_steps >= 1, "a step of ", options.micro_steps, " micro-steps");
  DT_CHECK(options.loss_scale > 0, "loss scale ", options.loss_scale, ": expected a positive number");
  schedule_.validate();
  DT_CHECK(options.double_loss_scale_after >= 0, "loss scale doubled every ", options.double_loss_scale_after,
           " steps");
  if (options.communicator) {
    check_equal(options.communicator->group(), settings_of(store, optimizer, schedule_, options), "training");
    bucketer_.emplace(*options.communicator, store.grads(), gradient_ranges(store), options.buckets);
  }
  host_l2_ = host_tensor(store.context(), {static_cast<int64_t>(kRing)});
  resume(0);
}

void Trainer::resume(uint64_t steps_done, const StepState& saved) {
  StepState state{.loss_scale = options_.loss_scale, .double_after = options_.double_loss_scale_after};
  if (state.double_after > 0 && saved.double_after > 0) {
    state.loss_scale = saved.loss_scale;
    state.good_steps = saved.good_steps;
  }
  state.skipped = saved.skipped;
  store_->context().set_step_state(state);
  steps_done_ = collected_ = resumed_after_ = steps_done;
  diverged_ = 0;
}

void Trainer::enter_step() {
  if (!options_.communicator) return;
  const uint64_t own = steps_done_ - resumed_after_, set_up = store_->context().is_cpu() ? 1 : 1 + kEagerSteps;
  options_.communicator->group().enter(own < set_up ? Section::setup : Section::step, steps_done_ + 1);
}

// Buckets and captured steps depend on which parameters are trainable.
void Trainer::follow_layout() {
  if (layout_version_ == store_->layout_version()) return;
  layout_version_ = store_->layout_version();
  if (bucketer_) bucketer_.emplace(*options_.communicator, store_->grads(), gradient_ranges(*store_), options_.buckets);
  captured_.clear();
}

void Trainer::set_buckets(const BucketOptions& options) {
  options_.buckets = options;
  if (bucketer_) bucketer_->plan(options);
}

void Trainer::enqueue(const Forward& forward, const StepRequest& request) {
  Context& context = store_->context();
  if (diverged_ > 0)
    throw Error(Fault::numeric, concat("step ", diverged_,
                                       " was not finite and no parameter has changed since: resume "
                                       "from a checkpoint before it, with a lower learning rate"));
  follow_layout();
  enter_step();
  const size_t slot = steps_done_ % kRing;
  Pending& pending = pending_[slot];
  context.wait(pending.end);  // of an uncollected step
  // With no step in flight, the device idled for other reasons than input.
  const Event before = steps_done_ > collected_ ? pending_[(slot + kRing - 1) % kRing].end : Event{};
  pending = {.before = before, .begin = {}, .end = {}, .l2_loss = request.l2_loss};
  context.set_scalars(
      {.learning_rate = rate_of(steps_done_),
       .gradient_scale = 1 / static_cast<float>(options_.micro_steps * (options_.independent ? 1 : ranks())),
       .step = steps_done_,
       .seed = options_.seed,
       .request = request.asks ? 1.0f : 0.0f});
  if (request.l2_loss) context.download_later(optimizer_->queue_l2_loss(), host_l2_.data<float>() + slot);
  pending.begin = context.record();
  tunes_ = !context.is_cpu() && !std::exchange(captured_[request.signature].met, true);
  if (uses_graphs() && request.capture && context.profiler() == nullptr)  // which cannot observe ops inside a graph
    run_graph(forward, request.signature, pending);
  else
    run(forward, pending.parts);
  const auto row = static_cast<int64_t>(slot);
  pending.end = context.download_later(ring_.slice(row, row + 1), host_ring_.slice(row, row + 1).raw());
  if (options_.communicator) options_.communicator->watch(pending.end);
  ++steps_done_;
}

void Trainer::run_graph(const Forward& forward, const std::string& signature, Pending& pending) {
  Context& context = store_->context();
  CapturedStep& captured = captured_[signature];
  if (captured.eager_steps < kEagerSteps) {
    ++captured.eager_steps;
    return run(forward, pending.parts);
  }
  if (!captured.graph) {
    try {
      captured.graph = context.capture([&] {
        captured.parts.clear();
        run(forward, captured.parts);
      });
    } catch (const Error& error) {
      if (error.fault() != Fault::resource) throw;
      options_.cuda_graph = false;
      context.notices().push_back(concat("steps run eagerly, without CUDA graph: ", error.what()));
    }
    pending.begin = context.record();  // excludes the time of the capture
    if (!captured.graph) return run(forward, pending.parts);
  }
  context.name_work("step");
  const std::vector<Event> stamps = context.launch(*captured.graph);
  context.name_work(nullptr);
  pending.parts = captured.parts;
  for (size_t i = 0; i < stamps.size(); ++i) pending.parts[i].second = stamps[i];
  store_->touch();
}

void Trainer::run(const Forward& forward, Parts& parts) {
  bytes_ = static_cast<double>(store_->values().bytes()) *
           (3 + 2 * store_->optimizer_states() + (optimizer_->average() ? 3 : 0));
  for (int micro_step = 0; micro_step < options_.micro_steps; ++micro_step) {
    statistics_->begin(micro_step);
    run_micro_step(forward, micro_step, parts);
  }
  statistics_->end();
  if (bucketer_) all_reduce_step(parts);
  mark(parts, &StepTimes::update, "update");
  optimizer_->step();
  finish_step_row(store_->context(), optimizer_->norm(), row_, ring_);
  store_->context().name_work(nullptr);
}

void Trainer::run_micro_step(const Forward& forward, int micro_step, Parts& parts) {
  Context& context = store_->context();
  const int rank = options_.communicator ? options_.communicator->rank() : 0;
  Tape tape(context, Mode::train, micro_step, micro_step * ranks() + rank);
  const char* pass = "the forward pass after";
  try {
    mark(parts, &StepTimes::forward, "forward");
    const Loss loss = forward(tape, micro_step);
    add_metrics(loss, micro_step > 0);
    pass = "the gradient of";
    mark(parts, &StepTimes::backward, "backward");
    bytes_ += 3 * static_cast<double>(tape.bytes());
    if (bucketer_ && !options_.independent && micro_step + 1 == options_.micro_steps) {
      bucketer_->begin(/*at_the_end=*/tunes_);
      tape.on_ready([this](const Parameter& parameter) { bucketer_->ready(parameter.index); });
    }
    std::vector<std::string> unwritten = tape.backward(loss.total, &*store_);
    if (micro_step == 0)
      unwritten_ = std::move(unwritten);
    else
      keep_common(unwritten_, unwritten);
  } catch (const Error& error) {
    if (!context.capturing()) throw;
    const std::string op = *tape.current_op() ? concat("op ", tape.current_op()) : "the first op";
    throw Error(error.fault(), concat("capturing step ", steps_done_ + 1, ", in ", pass, " ", op, ": ", error.what()));
  }
}

void Trainer::add_metrics(const Loss& loss, bool add) {
  Context& context = store_->context();
  const std::vector<Tensor> sums = columns_.sums_of(loss);
  if (!row_) {
    const int64_t columns = columns_.count() + kStepColumns;
    row_ = context.zeros({columns});
    ring_ = context.zeros({static_cast<int64_t>(kRing), columns});
    host_ring_ = host_tensor(context, ring_.shape());
  }
  add_step_sums(context, sums, add, row_);
}

// Metrics and running statistics are reduced with the last gradients, so that all ranks hold the same.
void Trainer::all_reduce_step(Parts& parts) {
  mark(parts, &StepTimes::reduce, "reduce");
  std::vector<Tensor> tail = {row_.slice(0, columns_.count() + kStepSummed)};
  if (options_.independent) {
    options_.communicator->all_reduce(tail, "metrics", /*exact=*/true);
    return options_.communicator->join();
  }
  const std::vector<Tensor> averaged = options_.equal_statistics ? std::vector<Tensor>() : statistics_->averaged();
  tail.insert(tail.end(), averaged.begin(), averaged.end());
  bucketer_->finish(std::move(tail));
  if (!options_.equal_statistics) statistics_->divide(ranks());
}

// Work enqueued from here on belongs to `part`.
void Trainer::mark(Parts& parts, double StepTimes::*part, const char* name) {
  Context& context = store_->context();
  context.name_work(name);
  parts.emplace_back(part, context.stamp());
}

std::vector<StepReport> Trainer::collect(uint64_t leave) {
  Context& context = store_->context();
  std::vector<StepReport> reports;
  if (steps_done_ - collected_ > kRing) collected_ = steps_done_ - kRing;
  for (; collected_ < steps_done_; ++collected_) {
    Pending& pending = pending_[collected_ % kRing];
    if (steps_done_ - collected_ > leave)
      context.wait(pending.end);
    else if (!context.is_past(pending.end))
      break;
    reports.push_back(report_of(collected_));
    if (!reports.back().finite && diverged_ == 0) diverged_ = reports.back().step;
    pending.parts.clear();  // a graph launch may overwrite them
  }
  return reports;
}

StepReport Trainer::report_of(uint64_t step) const {
  const Pending& pending = pending_[step % kRing];
  const float* sums = host_ring_.data<float>() + static_cast<int64_t>(step % kRing) * host_ring_.dim(1);
  const float* row = sums + columns_.count();
  if (row[kStepMark] != step_mark(step) * static_cast<float>(ranks()))
    throw Error(Fault::communication, concat("step ", step + 1,
                                             ": the all-reduce mixed different steps: a rank skipped or repeated a "
                                             "collective, and parameters differ; resume from the last checkpoint"));
  StepReport report;
  report.step = step + 1;
  report.loss = MetricColumns::total(sums, options_.micro_steps * ranks());
  report.metrics = columns_.values(sums, options_.micro_steps * ranks());
  report.requests = static_cast<int>(row[kStepRequests]);
  report.learning_rate = rate_of(step);
  if (pending.l2_loss) report.l2_loss = host_l2_.data<float>()[step % kRing];
  report.gradient_norm = row[kStepNorm];
  report.finite = row[kStepFinite] != 0;
  report.loss_scale = row[kStepLossScale];
  report.skipped = static_cast<uint64_t>(row[kStepSkipped]);
  report.times = times_of(pending);
  report.bytes = bytes_;
  return report;
}

StepTimes Trainer::times_of(const Pending& pending) const {
  Context& context = store_->context();
  StepTimes times;
  times.step = context.seconds_between(pending.begin, pending.end);
  if (pending.before.device) times.before = context.seconds_between(pending.before, pending.begin);
  for (size_t i = 0; i < pending.parts.size(); ++i) {
    const auto& [part, begin] = pending.parts[i];
    const Event& end = i + 1 < pending.parts.size() ? pending.parts[i + 1].second : pending.end;
    times.*part += context.seconds_between(begin, end);
  }
  return times;
}

StepReport Trainer::step(const Forward& forward, const StepRequest& request) {
  enqueue(forward, request);
  return collect().back();
}

std::string Trainer::worst_parameter() const {
  std::string worst;
  double largest = -1;
  for (const Parameter& parameter : store_->parameters()) {
    if (parameter.options().frozen) continue;
    const double squares = sum_of_squares(store_->context(), parameter.grad);
    if (!std::isfinite(squares)) return parameter.name;
    if (squares > largest) {
      largest = squares;
      worst = parameter.name;
    }
  }
  return worst;
}

}  // namespace dtrain
