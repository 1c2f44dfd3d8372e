// Shared main functions of benchmark programs: command line, --help, error handling.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>

#include "apps/cli/flags.h"
#include "dtrain/core/context.h"

namespace dtrain {

// Range of --batch in programs that have no automatic batch size.
inline constexpr cli::Range<int64_t> kPositiveBatch{1, cli::kBatch.high};

// Parses the flags and runs `body`, unless --help or --version is given. Returns the exit code: 0, or 1 after one line
// on stderr that begins with the program's name.
int run_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void()>& body);

// The same for a program that uses Google Benchmark. The command line may also hold Google Benchmark's flags
// (--benchmark_filter=REGEX), which --help lists.
int run_google_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void()>& body);

// The same for benchmarks of ops: declares --device, calls `register_all` for each device that the flag selects, and
// runs the benchmarks that it has registered. Throws Error for --device gpu where there is no GPU.
int run_op_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void(Context&)>& register_all);

// --batch of benchmarks of ops. The default depends on the device.
class BatchFlag {
 public:
  void declare(cli::FlagSet& flags);
  // Samples per batch on this device.
  int64_t on(const Context& context) const;

 private:
  std::optional<int64_t> batch_;
};

// Throws Error for the first of these flags that was not given.
void require_flags(const cli::FlagSet& flags, std::initializer_list<const char*> names);

}  // namespace dtrain
