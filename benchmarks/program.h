// The main functions of the benchmark programs: command line, --help, errors.
#pragma once

#include <functional>
#include <initializer_list>

#include "apps/cli/flags.h"

namespace dtrain {

// Of a batch whose size the program does not choose by itself.
inline constexpr cli::Range<int64_t> kPositiveBatch{1, cli::kBatch.high};

// Reads the command line, which consists of flags, and runs `body`, unless --help or --version is given. Returns the
// exit code: 0, or 1 after one line on stderr that begins with the program's name.
int run_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void()>& body);

// The same for a program whose `body` runs benchmarks by Google Benchmark, whose flags (--benchmark_filter=REGEX) the
// command line may hold as well. --help lists them.
int run_google_program(cli::FlagSet& flags, int argc, char** argv, const std::function<void()>& body);

// Throws Error for the first of these flags that the command line lacks.
void require_flags(const cli::FlagSet& flags, std::initializer_list<const char*> names);

}  // namespace dtrain
