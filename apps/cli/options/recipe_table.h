// Table of the flags that each recipe sets.
#pragma once

#include <vector>

namespace dtrain::cli {

struct Setting {
  const char *flag, *value;
};

// Flags of one subject.
struct Part {
  const char* subject;
  std::vector<Setting> settings;
};

struct Recipe {
  const char* name;
  const char* sharding;  // sharding of samples over ranks there: not reproduced
  std::vector<Part> parts;
};

// All recipes, in the order of the help text.
const std::vector<Recipe>& recipes();

}  // namespace dtrain::cli
