// Reference of all --config keys: type, default of each preset, meaning.
#pragma once

#include <string>
#include <vector>

namespace dtrain::mask_rcnn {

struct KeyMeaning {
  const char* name;
  const char* type;
  const char* meaning;
};
// All config_keys(), by group.
std::vector<KeyMeaning> key_meanings();

// For a terminal, and as Markdown: docs/detection_keys.md.
std::string key_help();
std::string key_markdown();

}  // namespace dtrain::mask_rcnn
