#include "benchmarks/program.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "benchmarks/devices.h"
#include "dtrain/core/error.h"

namespace dtrain {
namespace {

constexpr int64_t kCpuBatch = 16, kGpuBatch = 256;

int run(const std::string& program, const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    cli::print_message(program, error.what());
    return 1;
  }
}

bool is_of_google_benchmark(std::string_view argument) {
  return argument.starts_with("--benchmark_") || argument.starts_with("--v=");
}

// Passes Google Benchmark its flags and returns the other arguments. We handle --help, since Google Benchmark's --help
// exits the program.
std::vector<std::string> initialize_google_benchmark(int argc, char** argv) {
  std::vector<char*> theirs{argv[0]};
  std::vector<std::string> rest{argv[0]};
  for (char* argument : std::vector<char*>(argv + 1, argv + argc)) {
    if (is_of_google_benchmark(argument))
      theirs.push_back(argument);
    else
      rest.emplace_back(argument);
  }
  int count = static_cast<int>(theirs.size());
  benchmark::Initialize(&count, theirs.data());  // keeps arguments that it does not recognise
  DT_CHECK(count == 1, theirs[1], ": expected a flag of Google Benchmark in one of the forms that --help lists");
  return rest;
}

}  // namespace

int run_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void()>& body) {
  return run(flags.program(), [&] {
    if (cli::read_flags(flags, {argv, argv + argc})) body();
  });
}

int run_google_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void()>& body) {
  return run(flags.program(), [&] {
    if (cli::read_flags(flags, initialize_google_benchmark(argc, argv))) return body();
    if (!flags.wants_help() || flags.wants_markdown() || !flags.help_form().empty()) return;
    fmt::print("\nGoogle Benchmark\n");
    benchmark::PrintDefaultHelp();
  });
}

int run_op_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void(Context&)>& register_all) {
  std::string device = "all";
  flags.add_choice("device", device, {"cpu", "gpu", "all"}, "device; all: the CPU, and a GPU if there is one");
  return run_google_program(flags, argc, argv, [&] { run_benchmarks(device, register_all); });
}

void BatchFlag::declare(cli::FlagSet& flags) {
  flags.add("batch", batch_, "samples per batch; default: 16 on a CPU, 256 on a GPU", kPositiveBatch);
}

int64_t BatchFlag::on(const Context& context) const {
  return batch_.value_or(context.is_cpu() ? kCpuBatch : kGpuBatch);
}

void require_flags(const cli::FlagSet& flags, std::initializer_list<const char*> names) {
  for (const char* name : names) DT_CHECK(flags.given(name), "--", name, " is required; see --help");
}

}  // namespace dtrain
