// Command-line handling shared by all programs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

// Parses argv and returns the positional arguments. Returns none after printing --help or --version: the program should
// exit. One rank prints notices about former names of flags on stderr. Throws like FlagSet::parse.
std::optional<std::vector<std::string>> read_command_line(FlagSet& flags, const std::vector<std::string>& argv);

// The same for a program without positional arguments: false if it should exit; throws Error for a positional argument.
// `settle`, if given, derives flags from others before --print_config prints them.
bool read_flags(FlagSet& flags, const std::vector<std::string>& argv, const std::function<void()>& settle = {});

}  // namespace dtrain::cli
