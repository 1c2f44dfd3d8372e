// Programs with subcommands: dtrain-data verify ...
#pragma once

#include <span>
#include <string>
#include <vector>

namespace dtrain::cli {

struct Command {
  const char* name;
  // argv[0] is the program and the command, "dtrain-data verify"; returns the exit code.
  int (*run)(const std::vector<std::string>& argv);
  const char* meaning;
};

// A program with subcommands.
struct CommandSet {
  const char* program;
  const char* meaning;
  const char* codes;  // meanings of the exit codes
  std::span<const Command> commands;
};

// Runs the command argv[1], or prints help. --help=list, for shell completion: a tab-separated line of name, "command"
// and meaning per command; --help=man: a manual page. Throws Error for an unknown command, naming the nearest one.
int run_command(const CommandSet& set, const std::vector<std::string>& argv);

}  // namespace dtrain::cli
