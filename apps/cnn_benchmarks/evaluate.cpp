// Evaluation and its lines.
#include "apps/cnn_benchmarks/evaluate.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/weights.h"

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

// The newest complete checkpoint, verified. Reads only: a run that is still training holds the lock of train_dir.
std::optional<std::string> newest_checkpoint(const std::string& train_dir, Log& log) {
  const std::string directory = train_dir + "/checkpoints";
  if (!std::filesystem::is_directory(directory)) return std::nullopt;
  const std::vector<uint64_t> steps = list_checkpoints(directory);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = checkpoint_path(directory, *step);
    try {
      verify_checkpoint(path);
      return path;
    } catch (const Error& error) {
      log.notice(error.what());
    }
  }
  return std::nullopt;
}

void load(Session& session, const std::string& path) {
  const TrainState state = read_train_state(path);
  const TrainState expected = session.description();
  for (const char* key : {"model", "classes"}) {
    const auto found = state.identity.find(key);
    if (found != state.identity.end() && found->second != expected.identity.at(key))
      throw Error(Fault::checkpoint,
                  fmt::format("{}: {} is {}, asked for is {}", path, key, found->second, expected.identity.at(key)));
  }
  const std::string file = path + "/model.safetensors";
  const WeightReport report = load_weights(session.store, file, Fault::checkpoint);
  if (!report.complete())
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit the model: {}", file, report.summary()));
}

}  // namespace

Accuracy accuracy_of(Context& context, const Classification& classified, uint64_t examples) {
  const double rows = static_cast<double>(std::max<uint64_t>(1, examples));
  return {sum(context, classified.in_top_1) / rows, sum(context, classified.in_top_5) / rows, examples};
}

std::optional<Accuracy> evaluate(const Session& session, Log& log) {
  Context& context = *session.context;
  Input input = Input::validation(context, session.config, session.datasets);
  const int64_t every = session.config.flags.display_every;
  const Clock::time_point start = Clock::now();
  Clock::time_point shown = start;
  double top_1 = 0, top_5 = 0;
  Accuracy result;
  for (int64_t step = 1; step <= session.plan.eval_batches; ++step) {
    if (cli::stop_requested()) return std::nullopt;
    const data::Batch* batch = input.next();
    if (batch == nullptr) break;
    Tape tape(context, dtrain::Mode::eval);
    const Accuracy found = accuracy_of(context, session.forward(tape, *batch), static_cast<uint64_t>(batch->valid));
    top_1 += found.top_1 * static_cast<double>(found.examples);
    top_5 += found.top_5 * static_cast<double>(found.examples);
    result.examples += found.examples;
    if (step % every != 0) continue;
    log.evaluation_step(step, static_cast<double>(session.config.eval_batch * every) / seconds_since(shown));
    shown = Clock::now();
  }
  if (result.examples == 0) throw Error(Fault::data, "evaluation: no example could be read");
  result.top_1 = top_1 / static_cast<double>(result.examples);
  result.top_5 = top_5 / static_cast<double>(result.examples);
  log.accuracy(result);
  if (session.config.mode == RunMode::evaluation)
    log.total(static_cast<double>(result.examples) / seconds_since(start));
  return result;
}

int run_evaluation(Session& session, Log& log) {
  const Flags& f = session.config.flags;
  while (!cli::stop_requested()) {
    const auto path = newest_checkpoint(f.train_dir, log);
    if (path) {
      load(session, *path);
      log.line(fmt::format("Successfully loaded model from {}.", *path));
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
