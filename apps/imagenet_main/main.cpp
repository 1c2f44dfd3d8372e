// dtrain-imagenet-main: command-line and log compatible with imagenet_main.py, MLPerf's ResNet reference in Intel's
// version.
#include "apps/cli/arguments.h"
#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/run_main.h"
#include "apps/cli/values.h"
#include "apps/cnn_benchmarks/program.h"
#include "apps/imagenet_main/translation.h"
#include "apps/observers/imagenet_main_log.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Trains ResNet v1.5 on ImageNet, with the arguments, tags and log of MLPerf's reference imagenet_main.py in the "
    "version of Intel's Model Zoo. Runs `dtrain-cnn-benchmarks --recipe=intel`, or --recipe=mlperf with "
    "--enable_lars.\n"
    "Under mpirun, each process is a rank, and all ranks train one model. Flags of dtrain-cnn-benchmarks may follow "
    "`--` and take precedence.\n"
    "Exit codes: as dtrain-cnn-benchmarks.";

int run(const std::vector<std::string>& argv) {
  cli::FlagSet flags("dtrain-imagenet-main", "SEED [--flag value | --switch]... [-- flags of dtrain's]", kAbout);
  imagenet_main::declare(flags);
  const auto arguments = cli::read_command_line(flags, argv);
  if (!arguments) return 0;
  DT_CHECK(!arguments->empty() && !arguments->front().starts_with("--"),
           "expected the seed, an integer, as the first argument");
  const int64_t seed = cli::parse_number<int64_t>(arguments->front());
  std::vector<std::string> line = imagenet_main::translated(flags, std::to_string(seed));
  line.insert(line.begin(), "dtrain-cnn-benchmarks");
  const std::vector<std::string> more(arguments->begin() + 1, arguments->end());
  cli::append_flags(line, more);

  observers::ImagenetMainLogOptions options;
  if (flags.given("stop_threshold")) options.threshold = std::stod(flags.text("stop_threshold"));
  cnn_benchmarks::FrontEnd front{.argv = argv, .names = imagenet_main::names(flags, more)};
  front.observer = [&](const cnn_benchmarks::RunFacts& facts, cli::Log& log) {
    options.global_batch = static_cast<double>(facts.global_batch);
    options.samples = static_cast<double>(facts.samples);
    return std::make_unique<observers::ImagenetMainLog>(log, options);
  };
  return cnn_benchmarks::run_program(line, front);
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
