// Arguments of another program, and what each is as a flag of one of ours.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

// A row of a table that says of each argument what becomes of it.
struct Argument {
  std::string name;  // "batch_size", or "batch_size,b" with its short names
  std::string type, initial, meaning;
  std::string flag{};  // ours, which takes its value as it is; empty: the program reads it, but for what follows
  std::string no_effect{}, refused{};  // why; see Flag
};

// Types are those of FlagSet::add_unread().
void declare(FlagSet& flags, const std::string& group, const std::vector<Argument>& arguments);

// "--flag=value" for each argument that has a flag, given or not, but for empty values.
std::vector<std::string> translated(const FlagSet& flags, const std::vector<Argument>& arguments);

// Appends what follows `--`, flags of our own. Throws Error for what is none.
void append_flags(std::vector<std::string>& line, const std::vector<std::string>& more);

inline bool is_on(const FlagSet& flags, const std::string& name) { return flags.text(name) == "true"; }

}  // namespace dtrain::cli
