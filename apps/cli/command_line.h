// What every program does with its command line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

// Parses argv and returns the positional arguments, or none where --help or --version was asked for: that is printed
// then, and the program is done. Former names of flags are announced on stderr, by one of several ranks. Throws Error
// as FlagSet::parse does.
std::optional<std::vector<std::string>> read_command_line(FlagSet& flags, const std::vector<std::string>& argv);

// The same for a program all of whose arguments are flags. False where it is done; throws Error for any other argument.
// `settle`, if given, sets what follows from other flags, before --print_config prints all and the program is done.
bool read_flags(FlagSet& flags, const std::vector<std::string>& argv, const std::function<void()>& settle = {});

}  // namespace dtrain::cli
