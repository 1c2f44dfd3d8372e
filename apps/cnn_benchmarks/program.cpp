// Executes runs, from the command line to the exit code.
#include "apps/cnn_benchmarks/program.h"

#include <fmt/format.h>

#include "apps/cli/agreed_stop.h"
#include "apps/cli/class_name_check.h"
#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/horovod.h"
#include "apps/cli/output.h"
#include "apps/cli/ranks.h"
#include "apps/cli/recorded_weights.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/cnn_benchmarks/log_header.h"
#include "apps/cnn_benchmarks/modes.h"
#include "data/labelled_source.h"
#include "libdtrain/train/agreement.h"

namespace dtrain::cnn_benchmarks {
namespace {

constexpr char kAbout[] =
    "Trains, evaluates and benchmarks image classifiers, with tf_cnn_benchmarks' flags, data and log.\n"
    "The log is tf_cnn_benchmarks', except for the first line, which names dtrain instead of TensorFlow, and "
    "additional lines between `Initializing graph` and `Running warm up` and after the footer, which "
    "--compatible_with=master prints on stderr. Notices go to stderr.\n"
    "Under mpirun, each process is a rank with its own device, and all ranks train one model (synchronous data "
    "parallelism).\n"
    "Exit codes: 0 done, 1 usage, 2 data, 3 NaN or Inf, 4 another rank or the network, 5 checkpoint, 6 memory or disk, "
    "75 stopped on request (SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 or SIGXCPU) after a checkpoint: the same command "
    "resumes.";

// Throws Error unless device and data are equal on all ranks. Collective.
void check_machine_and_data(Group& group, const Settings& settings, const Datasets& datasets) {
  RankSettings alike = {{"the device", settings.machine.device()}};
  if (datasets.training) alike.emplace_back("the training data set", datasets.training->contents());
  if (datasets.validation) alike.emplace_back("the validation data set", datasets.validation->contents());
  check_equal(group, alike, "device and data sets");
}

// Starts a rank per device of --num_gpus and returns the exit code.
int run_ranks(const Flags& values, const cli::FlagSet& flags, const std::vector<std::string>& argv) {
  values.check(flags);
  const auto devices = static_cast<int>(values.tf.num_gpus);
  const bool takes_first = values.machine.device == "gpu" && values.machine.gpu_indices.empty();
  const int found = takes_first ? cuda_device_count() : 0;
  DT_CHECK(found == 0 || devices <= found, "--num_gpus=", devices, ": this machine has ", found);
  cli::LocalJob job = values.distribution.workers().local_job(devices);
  job.cores = cli::cores_for_ranks(devices, found > 0, values.machine.num_intra_threads.value_or(0));
  return cli::run_local_ranks(job, argv);
}

RunFacts facts_of(const TrainingJob& job) {
  return {.global_batch = job.settings.global_batch(),
          .ranks = job.settings.ranks.size,
          .samples = job.datasets.sizes.training};
}

// The initial or evaluated weights, if any, whose record applies to this run.
std::string recorded_weights(const Flags& values) {
  return values.model.detects() ? "" : values.checkpoints.recorded_weights(values.mode.eval);
}

// Labels of class folders and lists follow from the names of the classes: in other data they may have another meaning
// than in the recorded training.
void check_class_names(const Settings& settings, const std::vector<std::string>& names) {
  const std::string weights = recorded_weights(settings.flags), data_dir = settings.flags.input.data_dir;
  if (settings.trains() || !settings.flags.model.check_class_names || names.empty() || weights.empty()) return;
  if (data::outputs_of_classes(data_dir, 0)) cli::require_equal_names(names, data_dir, weights_file(weights));
}

// The run, after the ranks have connected.
int run_rank(Settings settings, const cli::FlagSet& flags, Group& group, const std::vector<std::string>& notices,
             const FrontEnd* front) {
  const bool other_log = front != nullptr;
  if (settings.trains()) settings.flags.checkpoints.clear(settings.ranks, group);
  adopt_checkpoint(settings, flags, group);
  cli::Log log(cli::patient_stdout(), cli::patient_stderr(), settings.ranks.is_chief());
  cli::Log front_log(cli::patient_stdout(), cli::patient_stderr(), settings.ranks.is_chief());
  if (other_log) log.keep_lines_back();
  if (settings.flags.tf.prints_their_lines_alone()) log.print_extras_as_notices();
  for (const std::string& notice : notices) log.notice(notice);
  if (other_log)
    for (cli::Log* each : {&log, &front_log})
      each->translate_notices([front](const std::string& text) { return front->names.in(text); });
  for (const std::string& notice : settings.notices) log.notice(notice);
  Datasets datasets;
  if (!cli::open_unless_stopped(group, [&] { datasets = open_datasets(settings); })) {
    log.notice("stopped on request while opening the data");
    return cli::kStopped;
  }
  DT_CHECK(!other_log || !settings.multi_label, settings.flags.input.data_dir,
           ": images have several labels, which the log of the other program has no metrics of; use ",
           "dtrain-cnn-benchmarks");
  check_class_names(settings, datasets.class_names);
  check_machine_and_data(group, settings, datasets);
  const TrainingSchedule schedule = make_schedule(settings, datasets.sizes);
  print_header(log, settings, schedule, cli::version());

  if (settings.mode != RunMode::evaluation) log.line("Generating training model");
  if (settings.evaluates()) log.line("Generating evaluation model");
  TrainingJob job(settings, schedule, datasets, group);
  const auto observer = other_log ? front->observer(facts_of(job), front_log) : nullptr;
  return run_mode(job, log, observer.get());
}

int run_line(const std::vector<std::string>& argv, const FrontEnd* front) {
  Flags values;
  cli::FlagSet flags("dtrain-cnn-benchmarks", "[--flag=value | --flag value | --switch | --noswitch]...", kAbout);
  values.declare(flags);
  std::vector<std::string> notices = front != nullptr ? front->notices : std::vector<std::string>{};
  const auto note = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) notices.push_back(front != nullptr ? front->names.in(line) : line);
  };
  const auto settle = [&] {
    const std::vector<std::string> recipe =
        values.recipe.apply(flags, front != nullptr ? &front->names.given : nullptr);
    notices.insert(notices.end(), recipe.begin(), recipe.end());  // in our flags, which may follow `--`
    values.settle(flags);
    note(cli::take_recorded(flags, recorded_weights(values), !values.mode.eval));
  };
  if (!cli::read_flags(flags, argv, settle)) return 0;

  if (const auto reason = values.distribution.reason_to_wait()) {
    cli::catch_stop_signals();
    cli::print_message("note", *reason);
    cli::wait_for_stop_request();
    return 0;
  }
  const cli::LocalRank local = cli::local_rank();
  if (values.tf.num_gpus > 1 && local.count == 0)
    return run_ranks(values, flags, front != nullptr ? front->argv : argv);
  note(cli::apply_horovod(cli::horovod_variables(), flags));
  cli::catch_stop_signals();
  const std::optional<TcpOptions> tcp = values.distribution.workers().tcp(local);
  const std::unique_ptr<Group> group = cli::open_group(values.ranks.job.limits(), values.ranks.job.expect_ranks, tcp);
  cli::check_flags(*group, flags);
  if (tcp && group->rank() != 0 && local.rank == 0)
    cli::print_message("note", fmt::format("{} of {} ranks: {} prints the log", group->name(group->rank()),
                                           group->size(), group->name(0)));
  const bool writes = !values.mode.eval && !values.mode.forward_only;
  if (values.checkpoints.is_remote()) values.check(flags);  // before the working folder takes its place
  if (writes && !values.checkpoints.open_remote(*group)) return cli::kStopped;
  const int code = run_rank(make_settings(values, flags, cli::ranks_of(*group)), flags, *group, notices, front);
  values.checkpoints.close_remote(*group);
  // Everything is saved. mpirun signals all ranks, too, when the first exits with kStopped.
  cli::ignore_stop_signals();
  group->finish();
  return code;
}

}  // namespace

int run_program(const std::vector<std::string>& argv) { return run_line(argv, nullptr); }

int run_program(const std::vector<std::string>& argv, const FrontEnd& front) {
  try {
    return run_line(argv, &front);
  } catch (const Error& error) {
    throw Error(error.fault(), front.names.in(error.what()));
  }
}

}  // namespace dtrain::cnn_benchmarks
