#include "apps/launch_benchmark/translation.h"

#include <algorithm>
#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/values.h"
#include "dtrain/core/error.h"

namespace dtrain::launch_benchmark {
namespace {

using Words = std::vector<std::string>;

int64_t number(const cli::FlagSet& flags, const char* name) {
  return flags.text(name).empty() ? -1 : cli::parse_number<int64_t>(flags.text(name), {-1, cli::kMostSteps});
}

int64_t batch_of(const cli::FlagSet& flags) {
  return number(flags, "batch-size") > 0 ? number(flags, "batch-size") : 64;
}

void check(const cli::FlagSet& flags) {
  for (const char* name : {"framework", "model-name", "precision", "mode"})
    DT_CHECK(flags.given(name), "--", name, " is needed");
  flags.check_refused();
  const bool mpi = flags.given("mpi_num_processes");
  cli::refuse({
      {flags.text("framework") != "tensorflow", "--framework: expected tensorflow, whose command lines these are"},
      {flags.text("model-name") != "resnet50v1_5", "--model-name: expected resnet50v1_5"},
      {flags.text("precision") == "int8", "--precision=int8 is not supported here; use dtrain-classify calibrate"},
      {mpi && flags.given("numa-cores-per-instance"),
       "--mpi_num_processes and --numa-cores-per-instance: at most one may be given"},
      {mpi && (flags.given("socket-id") || flags.given("num-cores")),
       "--mpi_num_processes and --socket-id or --num-cores: mpirun places its processes"},
      {is_on(flags, "accuracy-only") && flags.text("mode") == "training", "--accuracy-only is for inference"},
      {!mpi && flags.given("mpi_hostnames"), "--mpi_hostnames needs --mpi_num_processes"},
      {is_on(flags, "accuracy-only") && (!flags.given("checkpoint") || !flags.given("data-location")),
       "--accuracy-only needs --checkpoint and --data-location"},
  });
}

// Parses NAME=VALUE arguments such as steps=50, with dashes in names as underscores; flags stay in `words`.
std::map<std::string, std::string> take_custom(Words& words, bool training) {
  std::map<std::string, std::string> values = {{"steps", training ? "112590" : "50"},
                                               {"train_epochs", "72"},
                                               {"epochs_between_evals", "1"},
                                               {"kmp_blocktime", "1"},
                                               {"warmup_steps", "10"}};
  std::erase_if(words, [&](const std::string& word) {
    if (word.starts_with("--")) return false;
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::ranges::replace(name, '-', '_');
    DT_CHECK(equals != std::string::npos && values.contains(name), "'", word, "': expected steps=, train_epochs=, ",
             "epochs_between_evals=, warmup_steps= or kmp-blocktime=, with a number");
    values[name] = std::to_string(cli::parse_number<int64_t>(word.substr(equals + 1)));
    return true;
  });
  return values;
}

// Command line of one process; `part` is appended to its checkpoint folder.
Words command(const cli::FlagSet& flags, Words more, const std::string& folder, const std::string& part = "") {
  const bool training = flags.text("mode") == "training", bf16 = flags.text("precision") == "bfloat16";
  const auto custom = take_custom(more, training);
  const std::string &data = flags.text("data-location"), &threads = flags.text("num-intra-threads");
  Words line;
  const auto add = [&line](const Words& words) { line.insert(line.end(), words.begin(), words.end()); };
  if (training) {
    add({folder + "/dtrain-imagenet-main", "2", "--max_train_steps=" + custom.at("steps")});
    for (const char* name : {"train_epochs", "epochs_between_evals"})
      add({fmt::format("--{}={}", name, custom.at(name))});
    add({"--version=1", "--resnet_size=50", "--num_gpus=0"});
    if (bf16) add({"--use_bfloat16"});
    add({data.empty() ? "--use_synthetic_data" : "--data_dir=" + data});
    if (!threads.empty()) add({"--intra_op_parallelism_threads=" + threads});
    if (flags.given("num-inter-threads")) add({"--inter_op_parallelism_threads=" + flags.text("num-inter-threads")});
  } else {
    add({folder + "/dtrain-cnn-benchmarks", "--recipe=intel", "--device=cpu", "--data_name=imagenet"});
    if (bf16) add({"--precision=bf16"});
    if (!data.empty()) add({"--data_dir=" + data});
    if (!threads.empty()) add({"--num_intra_threads=" + threads});
    if (is_on(flags, "accuracy-only"))
      add({"--eval", "--num_eval_epochs=1"});
    else
      add({"--forward_only", "--num_batches=" + custom.at("steps"),
           "--num_warmup_batches=" + custom.at("warmup_steps")});
  }
  add({fmt::format("--batch_size={}", batch_of(flags))});
  if (flags.given("checkpoint"))
    add({fmt::format("--{}={}{}", training ? "model_dir" : "train_dir", flags.text("checkpoint"), part)});
  if (training && !more.empty()) add({"--"});
  add(more);
  return line;
}

}  // namespace

Plan plan(const cli::FlagSet& flags, const Words& more, const std::string& folder,
          std::vector<std::vector<int>> sockets) {
  check(flags);
  const int64_t socket = number(flags, "socket-id"), most = number(flags, "num-cores");
  sockets = cli::limited(std::move(sockets), socket, most);
  Plan plan{.batch = batch_of(flags)};
  if (std::ranges::any_of(more, [](const std::string& word) { return word.starts_with("kmp"); }))
    plan.notices.emplace_back("NOTE: kmp-blocktime has no effect: threads are GNU OpenMP's");
  const std::string logs = flags.given("output-dir") ? flags.text("output-dir") + "/" : "", &mode = flags.text("mode"),
                    &precision = flags.text("precision");
  if (const std::string& wanted = flags.text("numa-cores-per-instance"); !wanted.empty()) {
    const int64_t size = wanted == "socket" ? 0 : cli::parse_number<int64_t>(wanted, cli::kPositiveCount);
    for (const std::vector<int>& cores : cli::cores_of_instances(sockets, static_cast<size_t>(size), plan.notices)) {
      const size_t i = plan.launches.size();
      const std::string stem = fmt::format("{}resnet50v1_5_{}_{}_bs{}_cores{}_", logs, precision, mode, plan.batch,
                                           size > 0 ? wanted : fmt::format("{}", cores.size()));
      plan.combined_log = stem + "all_instances.log";
      plan.launches.push_back({command(flags, more, folder, fmt::format("/instance{}", i)), cores,
                               fmt::format("{}instance{}.log", stem, i)});
    }
    return plan;
  }
  cli::Launch& launch = plan.launches.emplace_back();
  if (const int64_t ranks = number(flags, "mpi_num_processes"); ranks > 0) {
    const int64_t each = std::max<int64_t>(1, number(flags, "mpi_num_processes_per_socket"));
    launch.command = cli::mpirun({.ranks = ranks,
                                  .per_socket = each,
                                  .cores_of_socket = static_cast<int64_t>(sockets.front().size()),
                                  .hosts = cli::split_list(flags.text("mpi_hostnames"))});
    plan.ranks = ranks;
  }
  const Words line = command(flags, more, folder);
  launch.command.insert(launch.command.end(), line.begin(), line.end());
  if (socket >= 0 || most > 0)
    for (const std::vector<int>& cores : sockets) launch.cores.insert(launch.cores.end(), cores.begin(), cores.end());
  if (!logs.empty())
    launch.log = fmt::format("{}benchmark_resnet50v1_5_{}_{}_{:%Y%m%d_%H%M%S}.log", logs, mode, precision,
                             fmt::localtime(std::time(nullptr)));
  return plan;
}

}  // namespace dtrain::launch_benchmark
