// Evaluation and its lines.
#include "apps/cnn_benchmarks/evaluate.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/load_checkpoint.h"
#include "libdtrain/ops/step_metrics.h"
#include "libdtrain/train/loss.h"

namespace dtrain::cnn_benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double sum(Context& context, const Tensor& rows) {
  std::vector<float> values(static_cast<size_t>(rows.count()));
  context.download(rows, values.data(), "evaluation");
  double total = 0;
  for (float value : values) total += value;
  return total;
}

// Shares over all ranks, from the hits of this one.
Accuracy over_ranks(Group& group, const Accuracy& hits) {
  Accuracy sum;
  const std::string mine = fmt::format("{} {} {}", hits.top_1, hits.top_5, hits.examples);
  for (const std::string& text : group.all_gather(mine, "accuracy")) {
    std::istringstream in(text);
    Accuracy one;
    in >> one.top_1 >> one.top_5 >> one.examples;
    sum.top_1 += one.top_1;
    sum.top_5 += one.top_5;
    sum.examples += one.examples;
  }
  if (sum.examples == 0) throw Error(Fault::data, "evaluation: no example could be read");
  const auto examples = static_cast<double>(sum.examples);
  return {sum.top_1 / examples, sum.top_5 / examples, sum.examples};
}

}  // namespace

bool stop_agreed(Group& group) { return group.extremes(cli::stop_requested() ? 1 : 0, "stop").second > 0; }

bool stop_agreed(const Session& session, uint64_t step) {
  const bool asks = session.group.size() == 1 || step % static_cast<uint64_t>(session.config.flags.display_every) == 0;
  return asks && stop_agreed(session.group);
}

Accuracy accuracy_of(Context& context, const Classification& classified, uint64_t examples) {
  const double rows = static_cast<double>(std::max<uint64_t>(1, examples));
  return {sum(context, classified.in_top_1) / rows, sum(context, classified.in_top_5) / rows, examples};
}

std::optional<Accuracy> evaluate(const Session& session, Log& log) {
  Context& context = *session.context;
  Input input = Input::validation(context, session.config, session.datasets, session.pixels());
  const int64_t every = session.config.flags.display_every;
  const Clock::time_point start = Clock::now();
  Clock::time_point shown = start;
  // Hits are added up on the device, so that it need not be waited for.
  MetricColumns columns;
  Tensor hits;
  Accuracy result;
  for (int64_t step = 1; step <= session.plan.eval_batches; ++step) {
    if (stop_agreed(session, static_cast<uint64_t>(step))) return std::nullopt;
    const data::Batch* batch = input.next();
    if (batch == nullptr) break;
    Tape tape(context, dtrain::Mode::eval);
    const Classification found = session.forward(tape, *batch);
    const std::vector<Tensor> sums = columns.sums_of(found);
    if (!hits) hits = context.zeros({columns.count() + kStepColumns});
    add_step_sums(context, sums, step > 1, hits);
    result.examples += static_cast<uint64_t>(batch->valid);
    if (step % every != 0) continue;
    context.synchronize("evaluation");
    log.evaluation_step(step, static_cast<double>(session.config.global_eval_batch() * every) / seconds_since(shown));
    shown = Clock::now();
  }
  std::vector<float> row(3);
  if (hits) context.download(hits.slice(0, 3), row.data(), "evaluation");
  result = over_ranks(session.group, {row[1], row[2], result.examples});
  log.notices(context);
  log.accuracy(result);
  if (session.config.mode == RunMode::evaluation)
    log.total(static_cast<double>(result.examples) / seconds_since(start));
  return result;
}

int run_evaluation(Session& session, Log& log) {
  const Flags& f = session.config.flags;
  if (!f.weights.empty()) return evaluate(session, log) ? 0 : cli::kStopped;
  while (true) {
    if (load_newest_checkpoint(session, log)) {
      if (!evaluate(session, log)) break;
    } else if (f.eval_interval_secs > 0) {
      log.line(fmt::format("Checkpoint not found in {}", f.train_dir));
    } else {
      throw Error(Fault::checkpoint, fmt::format("Checkpoint not found in {}", f.train_dir));
    }
    if (f.eval_interval_secs <= 0) return 0;
    const Clock::time_point began = Clock::now();
    // One rank's clock comes first, and all go on.
    const auto over = [&] { return seconds_since(began) >= static_cast<double>(f.eval_interval_secs) ? 1 : 0; };
    bool stopped = stop_agreed(session.group);
    while (!stopped && session.group.extremes(over(), "time to evaluate").second == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      stopped = stop_agreed(session.group);
    }
    if (stopped) break;
  }
  return cli::kStopped;
}

}  // namespace dtrain::cnn_benchmarks
