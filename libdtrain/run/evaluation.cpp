#include "dtrain/run/evaluation.h"

#include <chrono>

#include <fmt/format.h>

#include "dtrain/train/averaged.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/ops/step_metrics.h"

namespace dtrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kCounts = 2;  // last two sums: batches, and valid samples

// All-reduce in double precision of at least kCounts values.
std::vector<double> all_reduce(Group& group, const std::vector<double>& mine) {
  constexpr double kMost = 1e15;
  std::vector<double> sums(mine.size());
  read_texts(group, fmt::format("{}", fmt::join(mine, " ")), "evaluation", [&](int, const std::string& text) {
    std::vector<double> theirs;
    for (size_t at = 0, end = 0; end != std::string::npos && theirs.size() <= sums.size(); at = end + 1) {
      end = text.find(' ', at);
      theirs.push_back(number_in<double>(std::string_view(text).substr(at, end - at)));
    }
    DT_CHECK(theirs.size() == sums.size(), "not ", sums.size(), " numbers");
    for (size_t i = sums.size() - kCounts; i < sums.size(); ++i)
      DT_CHECK(theirs[i] >= 0 && theirs[i] <= kMost, "a count of ", theirs[i]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
  });
  return sums;
}

Evaluation evaluation_of(const MetricColumns& columns, const std::vector<double>& sums, double seconds) {
  const auto batches = static_cast<int64_t>(sums[sums.size() - 2]);
  Evaluation result;
  result.examples = static_cast<uint64_t>(sums.back());
  result.seconds = seconds;
  if (result.examples == 0) throw Error(Fault::data, "evaluation: no example could be read");
  result.values = columns.values(sums.data(), batches);
  result.values.push_back({"loss", sums[0] / static_cast<double>(batches)});
  return result;
}

// Joins two evaluations of the same samples.
Evaluation joined(Evaluation own, const Evaluation& averaged) {
  for (const MetricValue& value : averaged.values) own.values.push_back({"averaged_" + value.name, value.value});
  return own;
}

std::future<Evaluation> joined(std::future<Evaluation> own, std::future<Evaluation> averaged) {
  if (!is_ready(own) || !is_ready(averaged))
    return std::async(std::launch::async, [own = std::move(own), averaged = std::move(averaged)]() mutable {
      return joined(own.get(), averaged.get());
    });
  std::promise<Evaluation> result;
  result.set_value(joined(own.get(), averaged.get()));
  return result.get_future();
}

}  // namespace

std::future<Evaluation> evaluate_batches(Context& context, Group& group, const EvaluationRequest& request,
                                         const EvaluationLoop& loop) {
  const Clock::time_point began = Clock::now();
  MetricColumns columns;
  Tensor row;
  int64_t batches = 0, valid = 0;
  while (batches < loop.batches) {
    if (request.stop && request.stop(batches + 1)) return {};
    const std::optional<int64_t> counted = loop.load();
    if (!counted) break;
    valid += *counted;
    Tape tape(context, Mode::eval);
    const std::vector<Tensor> sums = columns.sums_of(loop.forward(tape));
    if (!row) row = context.zeros({columns.count() + kStepColumns});
    add_step_sums(context, sums, batches++ > 0, row);
    if (!request.progress || batches % request.progress_every != 0) continue;
    context.synchronize("evaluation");
    request.progress(batches, loop.batch * request.progress_every);
  }
  std::vector<float> own(static_cast<size_t>(columns.count()));
  if (row) context.download(row.slice(0, columns.count()), own.data(), "evaluation");
  std::vector<double> sums(own.begin(), own.end());
  sums.push_back(static_cast<double>(batches));
  sums.push_back(static_cast<double>(valid));
  std::promise<Evaluation> result;
  result.set_value(
      evaluation_of(columns, all_reduce(group, sums), std::chrono::duration<double>(Clock::now() - began).count()));
  return result.get_future();
}

std::vector<MetricValue> metrics_of(Context& context, const std::function<Loss()>& loss) {
  context.name_work("forward");
  MetricColumns columns;
  const std::vector<Tensor> sums = columns.sums_of(loss());
  const Tensor row = context.zeros({columns.count() + kStepColumns});
  add_step_sums(context, sums, false, row);
  std::vector<float> values(static_cast<size_t>(columns.count()));
  context.download(row.slice(0, columns.count()), values.data(), "metrics of a batch");
  context.name_work(nullptr);
  const std::vector<double> wide(values.begin(), values.end());
  return columns.values(wide.data(), 1);
}

namespace {

// The observer receives progress only.
std::future<Evaluation> evaluate_now(Task& task, Group& group, uint64_t step, int64_t show_every, Observer& observer,
                                     const std::function<bool()>& stop) {
  EvaluationRequest request;
  request.step = step;
  request.stop = [&](int64_t batch) {
    return (group.size() == 1 || batch % show_every == 0) && stop_agreed(group, stop);
  };
  request.progress_every = show_every;
  request.progress = [&](int64_t batches, int64_t examples) { observer.evaluating({step, batches, examples}); };
  return task.evaluate(request);
}

}  // namespace

std::future<Evaluation> begin_evaluation(Task& task, Group& group, uint64_t step, int64_t show_every,
                                         Observer& observer, const std::function<bool()>& stop) {
  observer.evaluating({.step = step});
  return evaluate_now(task, group, step, show_every, observer, stop);
}

std::future<Evaluation> begin_evaluations(Task& task, ParameterStore& store, const Tensor& average, Group& group,
                                          uint64_t step, int64_t show_every, Observer& observer,
                                          const std::function<bool()>& stop) {
  std::future<Evaluation> own = begin_evaluation(task, group, step, show_every, observer, stop), averaged;
  if (!average || !own.valid()) return own;
  with_average(store, average, [&] { averaged = evaluate_now(task, group, step, show_every, observer, stop); });
  if (!averaged.valid()) return averaged;
  return joined(std::move(own), std::move(averaged));
}

bool is_ready(const std::future<Evaluation>& evaluation) {
  return evaluation.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

bool stop_agreed(Group& group, const std::function<bool()>& stop) {
  return group.extremes(stop && stop() ? 1 : 0, "stop").second > 0;
}

std::optional<Evaluation> evaluate(Task& task, ParameterStore& store, const Tensor& average, Group& group,
                                   uint64_t step, int64_t show_every, Observer& observer,
                                   const std::function<bool()>& stop) {
  std::future<Evaluation> result = begin_evaluations(task, store, average, group, step, show_every, observer, stop);
  if (!result.valid()) return std::nullopt;
  Evaluation evaluation = result.get();
  observer.evaluated({.step = step, .result = evaluation});
  return evaluation;
}

}  // namespace dtrain
