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

// Runs the command that argv[1] names, or prints what there is. `codes`: what the exit codes mean. Throws Error for an
// unknown command, naming the nearest one.
int run_command(const char* program, std::span<const Command> commands, const char* codes,
                const std::vector<std::string>& argv);

}  // namespace dtrain::cli
