// What each recipe sets.
#pragma once

#include <vector>

namespace dtrain::cli {

struct Setting {
  const char *flag, *value;
};

// Those of one subject.
struct Part {
  const char* subject;
  std::vector<Setting> settings;
};

struct Recipe {
  const char* name;
  const char* sharding;  // which samples a rank sees there: not copied
  std::vector<Part> parts;
};

// All of them, in the order they are listed for people.
const std::vector<Recipe>& recipes();

}  // namespace dtrain::cli
