// The help text that is generated from the declarations of flags.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "apps/cli/flags.h"

namespace dtrain::cli {
namespace {

// Breaks `text` at blanks into lines of at most `width`, each after the first indented by `indent`.
std::string wrap(const std::string& text, size_t indent, size_t width) {
  std::string out;
  size_t column = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t length = end - begin;
    if (column > 0 && column + 1 + length > width) {
      out += '\n' + std::string(indent, ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out.append(text, begin, length);
    column += length;
    begin = end + 1;
  }
  return out;
}

// The same for each line of `text`, a paragraph each.
std::string wrap_paragraphs(const std::string& text, size_t width) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += wrap(line, 0, width) + '\n';
  return out;
}

}  // namespace

std::string FlagSet::help() const {
  std::string out =
      fmt::format("usage: {}{}{}\n\n{}", program_, usage_.empty() ? "" : " ", usage_, wrap_paragraphs(about_, 112));
  std::vector<std::string> groups;
  for (const Flag& flag : flags_)
    if (std::find(groups.begin(), groups.end(), flag.group_) == groups.end()) groups.push_back(flag.group_);
  for (const std::string& group : groups) {
    out += group.empty() ? "\n" : fmt::format("\n{}\n", group);
    for (const Flag& flag : flags_) {
      if (flag.group_ != group) continue;
      const std::string head = fmt::format("--{} ({}{})", flag.name_, flag.type_,
                                           flag.initial_.empty() ? "" : fmt::format(", default {}", flag.initial_));
      std::string meaning = flag.meaning_;
      for (const Flag::Source& variable : flag.variables_) meaning += fmt::format("; {} sets it", variable.name);
      for (const Flag::Source& former : flag.former_names_)
        meaning +=
            fmt::format("; formerly --{}{}", former.name, former.translate ? ", whose values are converted" : "");
      out += flag.served_ ? fmt::format("  {}\n      {}\n", head, wrap(meaning, 6, 106))
                          : fmt::format("  {}\n", wrap(fmt::format("{}: not served: {}", head, meaning), 6, 106));
    }
  }
  return out + "\nAny\n  --help, --version\n";
}

}  // namespace dtrain::cli
