// What of this machine's settings slows training down, and what to set instead.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dtrain/distributed/group.h"

namespace dtrain::info {

struct Advice {
  std::string found;    // "transparent huge pages are never used"
  std::string where;    // the file or the variable that says so
  std::string advised;  // "madvise: tensors ask for huge pages"
  std::string command;  // that sets it
};

// Files that the system does not have are no fault. `root`: where proc, sys and run are.
std::vector<Advice> host_advice(const Environment& variables, const std::filesystem::path& root = "/");

// A line for each piece of advice, and one that says so where there is none.
std::vector<std::string> advice_lines(const std::vector<Advice>& advice);

}  // namespace dtrain::info
