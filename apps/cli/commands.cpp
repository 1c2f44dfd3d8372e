#include "apps/cli/commands.h"

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "libdtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::cli {
namespace {

void print_commands(const char* program, std::span<const Command> commands, const char* codes) {
  fmt::print("usage: {} COMMAND [flags]    ({} COMMAND --help shows the flags)\n\n", program, program);
  for (const Command& command : commands) fmt::print("  {:<12}{}\n", command.name, command.meaning);
  fmt::print("\nExit codes: {}\n", codes);
}

}  // namespace

int run_command(const char* program, std::span<const Command> commands, const char* codes,
                const std::vector<std::string>& argv) {
  if (argv.size() < 2) throw Error(fmt::format("no command given; see {} --help", program));
  if (argv[1] == "--help" || argv[1] == "-h" || argv[1] == "help") {
    print_commands(program, commands, codes);
    return 0;
  }
  if (argv[1] == "--version") {
    fmt::print("{} {}\n", program, version());
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.push_back(command.name);
    if (argv[1] != command.name) continue;
    std::vector<std::string> rest{fmt::format("{} {}", program, argv[1])};
    rest.insert(rest.end(), argv.begin() + 2, argv.end());
    return command.run(rest);
  }
  const auto nearest = dtrain::nearest(argv[1], names);
  throw Error("no command " + argv[1] + (nearest ? "; did you mean " + *nearest + "?" : "; see --help"));
}

}  // namespace dtrain::cli
