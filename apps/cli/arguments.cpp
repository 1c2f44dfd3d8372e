#include "apps/cli/arguments.h"

#include <cctype>

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

FlagNames names_of(const FlagSet& flags, const std::vector<Argument>& arguments, const std::vector<std::string>& more) {
  FlagNames names;
  for (const Argument& argument : arguments) {
    const std::string theirs = split_list(argument.name).front();
    std::vector<std::string> same = split_list(argument.same);
    if (!argument.flag.empty()) same.push_back(argument.flag);
    for (const std::string& ours : same) names.theirs[ours] = theirs;
    if (!flags.given(theirs)) continue;
    names.given.insert(same.begin(), same.end());
    for (const std::string& ours : split_list(argument.sets)) names.given.insert(ours);
  }
  for (const std::string& flag : more) {
    const std::string ours = flag.substr(2, flag.find('=') - 2);
    names.theirs.erase(ours);
    names.given.insert(ours);
  }
  return names;
}

std::string FlagNames::in(const std::string& message) const {
  const auto ends_name = [](char c) { return c != '_' && !std::isalnum(static_cast<unsigned char>(c)); };
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const size_t begin = message.find("--", at);
    if (begin == message.npos) return text + message.substr(at);
    size_t end = begin + 2;
    while (end < message.size() && !ends_name(message[end])) ++end;
    const std::string name = message.substr(begin + 2, end - begin - 2);
    const auto found = theirs.find(name);
    text += message.substr(at, begin + 2 - at) + (found == theirs.end() ? name : found->second);
    at = end;
  }
  return text;
}

void append_flags(std::vector<std::string>& line, const std::vector<std::string>& more) {
  for (const std::string& flag : more) {
    DT_CHECK(flag.starts_with("--"), "unexpected argument '", flag, "'; see --help");
    line.push_back(flag);
  }
}

}  // namespace dtrain::cli
