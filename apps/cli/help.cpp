// Help text and Markdown, generated from flag declarations.
#include <algorithm>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "apps/cli/flags.h"

namespace dtrain::cli {
namespace {

// Wraps `text` at spaces to lines of at most `width`, with hanging indent `indent`.
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

// The same for each paragraph, a line of `text`.
std::string wrap_paragraphs(const std::string& text, size_t width) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += wrap(line, 0, width) + '\n';
  return out;
}

// `text` as a Markdown table cell: flags in code style, bars escaped.
std::string cell(const std::string& text) {
  static const std::regex kFlag(R"(--\w+(-\w+)*(=[\w.|/]*\w)?\*?)"), kBar(R"(\|)");
  return std::regex_replace(std::regex_replace(text, kFlag, "`$&`"), kBar, R"(\|)");
}

std::string code(const std::string& text) { return text.empty() ? "" : fmt::format("`{}`", text); }

}  // namespace

std::string Flag::description() const {
  std::string text = meaning_;
  for (const std::string& name : short_names_) text += fmt::format("; -{} for short", name);
  for (const Source& variable : variables_) text += fmt::format("; {} sets it", variable.name);
  for (const Source& former : former_names_)
    text += fmt::format("; formerly --{}{}", former.name, former.translate ? ", whose values are converted" : "");
  return text;
}

std::string Flag::fate() const {
  switch (fate_) {
    case Fate::supported:
      return "supported";
    case Fate::no_effect:
      return "no effect: " + reason_;
    case Fate::refused:
      return "not supported: " + reason_;
  }
  return "";
}

std::vector<std::string> FlagSet::groups() const {
  std::vector<std::string> groups;
  for (const Flag& flag : flags_)
    if (std::ranges::find(groups, flag.group_) == groups.end()) groups.push_back(flag.group_);
  return groups;
}

std::vector<std::string> FlagSet::supported_groups() const {
  std::vector<std::string> served = groups();
  std::erase_if(served, [&](const std::string& group) {
    return std::ranges::all_of(
        flags_, [&](const Flag& flag) { return flag.group_ != group || flag.fate_ == Flag::Fate::refused; });
  });
  return served;
}

std::string FlagSet::help() const {
  std::string out =
      fmt::format("usage: {}{}{}\n\n{}", program_, usage_.empty() ? "" : " ", usage_, wrap_paragraphs(about_, 112));
  for (const std::string& group : supported_groups()) {
    out += group.empty() ? "\n" : fmt::format("\n{}\n", group);
    for (const Flag& flag : flags_) {
      if (flag.group_ != group || flag.fate_ == Flag::Fate::refused) continue;
      const std::string fate = flag.fate_ == Flag::Fate::supported ? "" : "; " + flag.fate();
      out += fmt::format("  --{} ({}{})\n      {}\n", flag.name_, flag.type_,
                         flag.initial_.empty() ? "" : fmt::format(", default {}", flag.initial_),
                         wrap(flag.description() + fate, 6, 106));
    }
  }
  for (const auto& [name, meaning] : commands_)
    out += fmt::format("\nCommand\n  {} {}\n      {}; --help after it shows its flags\n", program_, name, meaning);
  return out + "\nAny\n  --help, --helpmarkdown, --version\n";
}

std::string FlagSet::markdown() const {
  std::string out;
  for (const std::string& group : groups()) {
    out += fmt::format("{}## {}\n\n| flag | type | default | meaning | support |\n|---|---|---|---|---|\n",
                       out.empty() ? "" : "\n", group);
    for (const Flag& flag : flags_)
      if (flag.group_ == group)
        out += fmt::format("| {} | {} | {} | {} | {} |\n", code(flag.name_), cell(flag.type_), code(flag.initial_),
                           cell(flag.description()), cell(flag.fate()));
  }
  return out;
}

}  // namespace dtrain::cli
