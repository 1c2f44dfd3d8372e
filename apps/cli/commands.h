// Programs of several commands: dtrain-data verify ...
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

// A program by its commands.
struct CommandSet {
  const char* program;
  const char* meaning;
  const char* codes;  // what the exit codes mean
  std::span<const Command> commands;
};

// Runs the command that argv[1] names, or prints what there is: for people, with --help=list for programs that complete
// command lines, a line for each command with its name, "command" and its meaning, by tabs, with --help=man as a manual
// page. Throws Error for an unknown command, naming the nearest one.
int run_command(const CommandSet& set, const std::vector<std::string>& argv);

}  // namespace dtrain::cli
