// dtrain-cnn-benchmarks: trains, evaluates and times image classifiers, in the manner of tf_cnn_benchmarks.
#include <iostream>

#include "apps/cli/environment.h"
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/evaluate.h"
#include "apps/cnn_benchmarks/train_loop.h"

namespace {

using namespace dtrain;
using namespace dtrain::cnn_benchmarks;

constexpr char kAbout[] =
    "Trains, evaluates and times image classifiers: tf_cnn_benchmarks' flags, data and log.\n"
    "The log differs from tf_cnn_benchmarks' in its first line, which names dtrain in place of TensorFlow, and in "
    "lines of our own between `Initializing graph` and `Running warm up` and after the footer; notices go to stderr.\n"
    "Exit codes: 0 done, 1 usage, 2 data, 3 NaN or Inf, 5 checkpoint, 6 memory or disk, 75 stopped on request "
    "(SIGTERM or SIGINT) after a checkpoint: the same command goes on.";

int run(const std::vector<std::string>& argv) {
  Flags values;
  cli::FlagSet flags("dtrain-cnn-benchmarks", "[--flag=value | --flag value | --switch | --noswitch]...", kAbout);
  declare(flags, values);
  const std::vector<std::string> positional = flags.parse(argv);
  if (flags.wants_help() || flags.wants_version()) {
    std::cout << (flags.wants_help() ? flags.help() : "dtrain-cnn-benchmarks " + cli::version() + "\n");
    return 0;
  }
  DT_CHECK(positional.empty(), "unexpected argument '", positional.front(), "': all arguments are flags; see --help");

  cli::catch_stop_signals();
  const Config config = make_config(values, flags);
  Log log(std::cout, std::cerr);
  for (const std::string& notice : config.notices) log.notice(notice);
  const Datasets datasets = open_datasets(config);
  const Plan plan = make_plan(config, datasets.sizes);
  log.header(config, plan, cli::version());

  log.line(config.mode == RunMode::evaluation ? "Generating evaluation model" : "Generating training model");
  Session session(config, plan, datasets);
  if (config.mode == RunMode::evaluation) return run_evaluation(session, log);
  if (config.mode == RunMode::forward_only) return run_forward_only(session, log);
  return run_training(session, log);
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
