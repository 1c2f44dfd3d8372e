// dtrain-launch-benchmark: command-line compatible with launch_benchmark.py of Intel's Model Zoo.
#include <filesystem>

#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/command_line.h"
#include "apps/cli/log.h"
#include "apps/cli/output.h"
#include "apps/cli/rank_table.h"
#include "apps/cli/run_main.h"
#include "apps/launch_benchmark/translation.h"
#include "libdtrain/core/cores.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Launches training or inference of ResNet-50 v1.5 on CPUs like Intel's launch_benchmark.py: one process, several "
    "ranks under mpirun, or several independent processes bound to disjoint cores. It starts dtrain-imagenet-main, or "
    "dtrain-cnn-benchmarks for inference, from its own folder; flags after `--` are passed on.\n"
    "At the end it prints the total images per second, from the last value of each process.\n"
    "Exit codes: as the started program; 1 usage, 6 memory, disk or processes.";

// Images per second from a log line; none for other lines.
std::optional<double> speed_in(const std::string& line, double images_per_step) {
  for (const auto& [text, images] : {std::pair{"global_step/sec: ", images_per_step}, {"total images/sec: ", 1.0}})
    if (const size_t at = line.find(text); at != std::string::npos)
      return images * std::atof(line.c_str() + at + std::char_traits<char>::length(text));
  return std::nullopt;
}

int run(const std::vector<std::string>& argv) {
  cli::FlagSet flags("dtrain-launch-benchmark", "[--flag value | --switch]... [-- name=value... flags]", kAbout);
  launch_benchmark::declare(flags);
  const auto more = cli::read_command_line(flags, argv);
  if (!more) return 0;
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const launch_benchmark::Plan plan = launch_benchmark::plan(flags, *more, folder, cores_by_socket(cli::cores_of(0)));
  cli::Log log(cli::patient_stdout(), cli::patient_stderr());
  for (const std::string& notice : plan.notices) log.line(notice);
  for (const cli::Launch& launch : plan.launches) log.line(shown(launch));
  if (is_on(flags, "dry-run")) return 0;

  std::error_code ignored;  // writing reports the error
  if (flags.given("output-dir")) std::filesystem::create_directories(flags.text("output-dir"), ignored);
  std::vector<double> speeds(plan.launches.size());
  const int code = cli::run(plan.launches, plan.combined_log, [&](size_t launch, const std::string& line) {
    if (const auto speed = speed_in(line, static_cast<double>(plan.batch * plan.ranks))) speeds[launch] = *speed;
  });
  double sum = 0;
  for (const double speed : speeds) sum += speed;
  if (sum > 0) {
    log.line("Throughput summary:");
    log.line(fmt::format("{:.6g}", sum));
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
