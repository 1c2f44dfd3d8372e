// dtrain-scale: predicts data-parallel training on many GPUs.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/cli/run_main.h"
#include "apps/scale/options.h"
#include "apps/scale/report.h"
#include "apps/scale/validation.h"
#include "dtrain/core/error.h"
#include "libdtrain/io/result_file.h"

namespace {

using namespace dtrain;

void write_text(const std::string& path, const std::string& text) {
  std::fflush(stdout);  // flush first if both go to the same file
  ResultFile file(path);
  file.write(text);
  file.commit();
}

int measure(const scale::Options& options) {
  const std::string text = scale::to_json(scale::measure_layers(options.measurement())).dump(1) + "\n";
  if (options.layers_out.empty())
    fmt::print("{}", text);
  else
    write_text(options.layers_out, text);
  return 0;
}

int predict(const scale::Options& options) {
  const scale::Study study = scale::make_study(options.device_step(), options.scale(), options.failures(),
                                               options.gpu_counts(), options.global_batch);
  std::string comparison;
  if (!options.measured.empty())
    comparison =
        scale::comparison_table(study.device, study.options, scale::read_runs(options.measured, study.device.batch));
  for (const std::string& line : scale::describe(study)) fmt::print("{}\n", cli::escaped(line));
  if (!comparison.empty()) fmt::print("\nMeasured runs beside their prediction\n{}", comparison);
  fmt::print("\nWeak scaling: the batch of each GPU stays\n{}", scale::table(study, study.weak));
  if (!study.strong.empty())
    fmt::print("\nStrong scaling: {} images in all\n{}", options.global_batch, scale::table(study, study.strong));
  fmt::print("\nCheckpoints\n{}", scale::checkpoint_table(study));
  if (!options.plot.empty()) {
    write_text(options.plot, scale::to_svg(scale::make_plot(study)));
    fmt::print("\nwritten: {}\n", cli::escaped(options.plot));
  }
  if (options.json)
    fmt::print("{}\n", scale::to_json(study).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 0;
}

int run(const std::vector<std::string>& argv) {
  scale::Options options;
  cli::FlagSet flags = scale::declare_flags(options);
  flags.add_config_file();
  if (!cli::read_flags(flags, argv)) return 0;
  scale::check(options);
  if (options.validate) {
    fmt::print("{}", scale::validation_report());
    return 0;
  }
  return options.measure ? measure(options) : predict(options);
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
