// Evaluation and its lines.
#include "apps/cnn_benchmarks/evaluate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/load_checkpoint.h"
#include "libdtrain/ops/step_metrics.h"

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

}  // namespace

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
  const Tensor hits = context.zeros({kStepMetrics});
  Accuracy result;
  for (int64_t step = 1; step <= session.plan.eval_batches; ++step) {
    if (cli::stop_requested()) return std::nullopt;
    const data::Batch* batch = input.next();
    if (batch == nullptr) break;
    Tape tape(context, dtrain::Mode::eval);
    const Classification found = session.forward(tape, *batch);
    add_step_metrics(context, found.loss.value, found.in_top_1, found.in_top_5, step > 1, hits);
    result.examples += static_cast<uint64_t>(batch->valid);
    if (step % every != 0) continue;
    context.synchronize("evaluation");
    log.evaluation_step(step, static_cast<double>(session.config.eval_batch * every) / seconds_since(shown));
    shown = Clock::now();
  }
  if (result.examples == 0) throw Error(Fault::data, "evaluation: no example could be read");
  float row[kStepMetrics];
  context.download(hits, row, "evaluation");
  result.top_1 = row[kMetricInTop1] / static_cast<double>(result.examples);
  result.top_5 = row[kMetricInTop5] / static_cast<double>(result.examples);
  log.notices(context);
  log.accuracy(result);
  if (session.config.mode == RunMode::evaluation)
    log.total(static_cast<double>(result.examples) / seconds_since(start));
  return result;
}

int run_evaluation(Session& session, Log& log) {
  const Flags& f = session.config.flags;
  if (!f.weights.empty()) return evaluate(session, log) ? 0 : cli::kStopped;
  while (!cli::stop_requested()) {
    if (load_newest_checkpoint(session, log)) {
      if (!evaluate(session, log)) break;
    } else if (f.eval_interval_secs > 0) {
      log.line(fmt::format("Checkpoint not found in {}", f.train_dir));
    } else {
      throw Error(Fault::checkpoint, fmt::format("Checkpoint not found in {}", f.train_dir));
    }
    if (f.eval_interval_secs <= 0) return 0;
    const Clock::time_point began = Clock::now();
    while (!cli::stop_requested() && seconds_since(began) < static_cast<double>(f.eval_interval_secs))
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return cli::kStopped;
}

}  // namespace dtrain::cnn_benchmarks
