#include "apps/cli/commands.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "apps/cli/flags.h"
#include "apps/cli/man_page.h"
#include "apps/cli/run_main.h"
#include "dtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::cli {
namespace {

void print_commands(const CommandSet& set) {
  fmt::print("usage: {} COMMAND [flags]    ({} COMMAND --help shows the flags)\n\n", set.program, set.program);
  size_t width = 10;
  for (const Command& command : set.commands) width = std::max(width, std::string_view(command.name).size());
  for (const Command& command : set.commands) fmt::print("  {:<{}}{}\n", command.name, width + 2, command.meaning);
  fmt::print("\nExit codes: {}\n", set.codes);
}

void print_list(const CommandSet& set) {
  for (const Command& command : set.commands) fmt::print("{}\tcommand\t{}\n", command.name, command.meaning);
  fmt::print("--help\tasks\tall commands\n--version\tasks\tthe version\n");
}

void print_man_page(const CommandSet& set) {
  ManPage page(set.program, set.meaning, {"COMMAND [flags]"});
  page.section("DESCRIPTION");
  page.paragraphs("Each command has its own manual page.");
  page.section("COMMANDS");
  std::vector<std::string> pages;
  for (const Command& command : set.commands) {
    page.item(command.name, "", command.meaning);
    pages.push_back(page_name(fmt::format("{} {}", set.program, command.name)));
  }
  fmt::print("{}", page.finish(set.codes, {}, pages));
}

// Handles --help, --version and similar of the whole program; false for any other `argument`.
bool answer(const CommandSet& set, const std::string& argument) {
  if (argument == "--help" || argument == "-h" || argument == "help")
    print_commands(set);
  else if (argument == "--help=list")
    print_list(set);
  else if (argument == "--help=man")
    print_man_page(set);
  else if (argument == "--version")
    fmt::print("{} {}\n", set.program, version());
  else
    return false;
  return true;
}

}  // namespace

int run_command(const CommandSet& set, const std::vector<std::string>& argv) {
  if (argv.size() < 2) throw Error(fmt::format("no command given; see {} --help", set.program));
  if (answer(set, argv[1])) return 0;
  std::vector<std::string> names;
  for (const Command& command : set.commands) {
    names.push_back(command.name);
    if (argv[1] != command.name) continue;
    std::vector<std::string> rest{fmt::format("{} {}", set.program, argv[1])};
    rest.insert(rest.end(), argv.begin() + 2, argv.end());
    if (rest.back() == "--help=man") rest.back() = fmt::format("--help={}{}", kManForm, command.meaning);
    return command.run(rest);
  }
  const auto nearest = dtrain::nearest(argv[1], names);
  throw Error("no command " + argv[1] + (nearest ? "; did you mean " + *nearest + "?" : "; see --help"));
}

}  // namespace dtrain::cli
