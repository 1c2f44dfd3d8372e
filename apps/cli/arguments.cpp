#include "apps/cli/arguments.h"

#include <fmt/format.h>

#include "apps/cli/values.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {

void declare(FlagSet& flags, const std::string& group, const std::vector<Argument>& arguments) {
  flags.group(group);
  for (const Argument& argument : arguments) {
    const std::vector<std::string> names = split_list(argument.name);
    Flag& flag = flags.add_unread(names.front(), argument.type, argument.initial, argument.meaning);
    for (size_t i = 1; i < names.size(); ++i) flag.short_name(names[i]);
    if (!argument.no_effect.empty()) flag.no_effect(argument.no_effect);
    if (!argument.refused.empty()) flag.refused(argument.refused);
  }
}

std::vector<std::string> translated(const FlagSet& flags, const std::vector<Argument>& arguments) {
  std::vector<std::string> line;
  for (const Argument& argument : arguments) {
    const std::string text = argument.flag.empty() ? "" : flags.text(split_list(argument.name).front());
    if (!text.empty()) line.push_back(fmt::format("--{}={}", argument.flag, text));
  }
  return line;
}

void append_flags(std::vector<std::string>& line, const std::vector<std::string>& more) {
  for (const std::string& flag : more) {
    DT_CHECK(flag.starts_with("--"), "unexpected argument '", flag, "'; see --help");
    line.push_back(flag);
  }
}

}  // namespace dtrain::cli
