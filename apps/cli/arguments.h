// Translation of another program's arguments into flags of ours.
#pragma once

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
};

// Types as in FlagSet::add_unread().
void declare(FlagSet& flags, const std::string& group, const std::vector<Argument>& arguments);

// "--flag=value" for each argument with a flag and a non-empty value, given or not.
std::vector<std::string> translated(const FlagSet& flags, const std::vector<Argument>& arguments);

// Appends the arguments after `--`, our own flags. Throws Error for an argument that is no flag.
void append_flags(std::vector<std::string>& line, const std::vector<std::string>& more);

inline bool is_on(const FlagSet& flags, const std::string& name) { return flags.text(name) == "true"; }

}  // namespace dtrain::cli
