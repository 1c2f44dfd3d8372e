#include "apps/mask_rcnn/key_reference.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/models/detection/presets.h"

namespace dtrain::mask_rcnn {
namespace {

using Described = std::map<std::string, std::string>;

// Values of each preset, by its name.
std::vector<std::pair<std::string, Described>> presets() {
  std::vector<std::pair<std::string, Described>> all;
  for (const models::DetectorPreset& preset : models::detector_presets())
    all.emplace_back(preset.name, preset_settings(preset.name).described());
  return all;
}

// "800", or "torchvision 800, aws 1"; empty if no preset has a value.
std::string defaults_of(const std::string& key, const std::vector<std::pair<std::string, Described>>& all) {
  std::string text, first;
  bool equal = true;
  for (const auto& [name, described] : all) {
    const auto found = described.find(key);
    const std::string value = found == described.end() ? "" : found->second;
    if (name == all.front().first) first = value;
    equal &= value == first;
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return equal ? first : text;
}

std::string meaning_of(const KeyMeaning& key) {
  return config_key(key.name).notice.empty() ? key.meaning : fmt::format("no effect: {}", key.meaning);
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
  return text;
}

}  // namespace

std::string key_help() {
  std::string out =
      "Keys of --config KEY=VALUE and --config_file, with their defaults by preset. Values are Python's literals.\n";
  const auto all = presets();
  for (const KeyMeaning& key : key_meanings()) {
    const std::string defaults = defaults_of(key.name, all);
    out += fmt::format("\n{} ({}{})\n    {}\n", key.name, key.type, defaults.empty() ? "" : "; default " + defaults,
                       meaning_of(key));
  }
  return out;
}

std::string key_markdown() {
  const auto all = presets();
  std::string header = "| key | type |", rule = "|---|---|";
  for (const auto& [name, described] : all) {
    header += fmt::format(" `{}` |", name);
    rule += "---|";
  }
  std::string out = header + " meaning |\n" + rule + "---|\n";
  for (const KeyMeaning& key : key_meanings()) {
    out += fmt::format("| `{}` | {} |", key.name, cell(key.type));
    for (const auto& [name, described] : all) {
      const auto found = described.find(key.name);
      out += found == described.end() || found->second.empty() ? " |" : fmt::format(" `{}` |", found->second);
    }
    out += fmt::format(" {} |\n", cell(meaning_of(key)));
  }
  return out;
}

}  // namespace dtrain::mask_rcnn
