// The reference of all keys of --config: type, default of each preset, meaning.
#pragma once

#include <string>
#include <vector>

namespace dtrain::mask_rcnn {

struct KeyMeaning {
  const char* name;
  const char* type;
  const char* meaning;
};
// Of all config_keys(), by groups.
std::vector<KeyMeaning> key_meanings();

// For a terminal, and as tables of Markdown: docs/detection_keys.md.
std::string key_help();
std::string key_markdown();

}  // namespace dtrain::mask_rcnn
