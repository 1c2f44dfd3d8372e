// dtrain-cnn-benchmarks: trains, evaluates and times image classifiers, in the manner of tf_cnn_benchmarks.
#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/horovod.h"
#include "apps/cli/output.h"
#include "apps/cli/ranks.h"
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/log_header.h"
#include "apps/cnn_benchmarks/modes.h"
#include "apps/cnn_benchmarks/run_options.h"
#include "libdtrain/run/evaluation.h"
#include "libdtrain/train/agreement.h"

namespace {

using namespace dtrain;
using namespace dtrain::cnn_benchmarks;

constexpr char kAbout[] =
    "Trains, evaluates and times image classifiers: tf_cnn_benchmarks' flags, data and log.\n"
    "The log differs from tf_cnn_benchmarks' in its first line, which names dtrain in place of TensorFlow, and in "
    "lines of our own between `Initializing graph` and `Running warm up` and after the footer; notices go to stderr.\n"
    "Started by mpirun, each process is a rank with a device of its own, and they train one model.\n"
    "Exit codes: 0 done, 1 usage, 2 data, 3 NaN or Inf, 4 another rank or the network, 5 checkpoint, 6 memory or disk, "
    "75 stopped on request (SIGTERM, SIGINT or SIGUSR1) after a checkpoint: the same command goes on.";

// False where one of the ranks was asked to stop before all data was open: unpacking may take long.
bool open_or_stop(Datasets& datasets, const Config& config, Group& group) {
  try {
    datasets = open_datasets(config);
  } catch (const Error&) {
    if (!cli::stop_requested()) throw;
  }
  return !stop_agreed(group, cli::stop_requested);
}

// What the flags have come to on this machine.
void check_machine_and_data(Group& group, const Config& config, const Datasets& datasets) {
  RankSettings settings = {{"the device", config.machine.device()}};
  if (datasets.training) settings.emplace_back("the training data set", datasets.training->contents());
  if (datasets.validation) settings.emplace_back("the validation data set", datasets.validation->contents());
  check_equal(group, settings, "device and data sets");
}

int run(const std::vector<std::string>& argv) {
  Flags values;
  cli::FlagSet flags("dtrain-cnn-benchmarks", "[--flag=value | --flag value | --switch | --noswitch]...", kAbout);
  values.declare(flags);
  if (!cli::read_flags(flags, argv)) return 0;
  const std::vector<std::string> recipe = values.recipe.apply(flags);

  if (const auto reason = values.distribution.reason_to_leave()) {
    cli::print_message("note", *reason);
    return 0;
  }
  const std::vector<std::string> taken_over = cli::apply_horovod(cli::horovod_variables(), flags);
  cli::catch_stop_signals();
  const std::unique_ptr<Group> group = cli::open_group(values.ranks.job.limits(), values.ranks.job.expect_ranks,
                                                       values.distribution.tcp_of_workers(values.machine.device));
  cli::check_flags(*group, flags);
  Config config = make_config(values, flags, cli::ranks_of(*group));
  keep_checkpoint(config, flags, *group);
  cli::Log log(cli::patient_stdout(), cli::patient_stderr(), config.ranks.is_chief());
  for (const auto* notices : {&recipe, &taken_over})
    for (const std::string& notice : *notices) log.notice(notice);
  for (const std::string& notice : config.notices) log.notice(notice);
  Datasets datasets;
  if (!open_or_stop(datasets, config, *group)) {
    log.notice("stopped on request while the data was opened");
    cli::ignore_stop_signals();
    group->finish();
    return cli::kStopped;
  }
  check_machine_and_data(*group, config, datasets);
  const Plan plan = make_plan(config, datasets.sizes);
  print_header(log, config, plan, cli::version());

  log.line(config.mode == RunMode::evaluation ? "Generating evaluation model" : "Generating training model");
  const char* faults = cli::environment()("DTRAIN_FAULT");
  Session session(config, plan, datasets, *group, faults == nullptr ? "" : faults);
  const int code = run_mode(session, log);
  // All is done and saved. mpirun sends one to all ranks, too, as soon as the first has ended with kStopped.
  cli::ignore_stop_signals();
  group->finish();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
