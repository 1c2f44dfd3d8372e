// Translation of another program's arguments into flags of ours.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

// A row of the translation table.
struct Argument {
  std::string name;  // "batch_size", or "batch_size,b" with its short names
  std::string type, initial, meaning;
  std::string flag{};                  // our flag with the same value; empty: read by the program, or one of the next
  std::string no_effect{}, refused{};  // the reason; see Flag
  // Comma-separated flags of ours that the program sets itself: to the same value in some cases, and to others.
  std::string same{}, sets{};
};

// Names in messages about our flags.
struct FlagNames {
  std::map<std::string, std::string> theirs{};  // our flag -> the argument with the same value
  std::set<std::string> given{};                // our flags that the user set, under either name

  // A message with "--ours" replaced by "--theirs".
  std::string in(const std::string& message) const;
};

// Types as in FlagSet::add_unread().
void declare(FlagSet& flags, const std::string& group, const std::vector<Argument>& arguments);

// "--flag=value" for each argument with a flag and a non-empty value, given or not.
std::vector<std::string> translated(const FlagSet& flags, const std::vector<Argument>& arguments);

// `more`: the arguments after `--`, which keep their names.
FlagNames names_of(const FlagSet& flags, const std::vector<Argument>& arguments, const std::vector<std::string>& more);

// Appends the arguments after `--`, our own flags. Throws Error for an argument that is no flag.
void append_flags(std::vector<std::string>& line, const std::vector<std::string>& more);

inline bool is_on(const FlagSet& flags, const std::string& name) { return flags.text(name) == "true"; }

}  // namespace dtrain::cli
