// Keys of TensorPack's and AWS Mask R-CNN's config.py, and their mapping to settings.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/mask_rcnn/literal.h"
#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

struct ConfigKey {
  std::string name;
  // Sets the value from text. Throws Error with the expected and the found value.
  std::function<void(Settings&, const std::string&)> set;
  // The value as text; empty if another key describes the setting.
  std::function<std::optional<std::string>(const Settings&)> get = [](const Settings&) { return std::nullopt; };
  std::string notice{};   // the reason, if the key has no effect
  bool of_model = false;  // part of the model's identity: a checkpoint with another value is not resumed
};

// Rows of the key table, by part of the settings.
std::vector<ConfigKey> data_keys();
std::vector<ConfigKey> image_keys();
std::vector<ConfigKey> training_keys();
std::vector<ConfigKey> backbone_keys();
std::vector<ConfigKey> proposal_keys();
std::vector<ConfigKey> head_keys();
std::vector<ConfigKey> unread_keys();  // no effect, or a single supported value
// Name of the preset in recorded settings; not a key.
inline constexpr char kPreset[] = "PRESET";
// All of them.
const std::vector<ConfigKey>& config_keys();
// Throws Error with the nearest name for an unknown key.
const ConfigKey& config_key(const std::string& name);

// Shared ranges.
inline constexpr cli::Range<int64_t> kChannelCount{1, 1 << 16}, kBoxCount{1, 1 << 20};
inline constexpr cli::Range<double> kPositiveSize{1e-6, 1e6};

// In Python's list syntax.
std::string listed(const auto& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// Row constructors. `member` returns a reference to the field of (const) settings.

template <class Member>
ConfigKey flag_key(const std::string& name, Member member, bool inverted = false) {
  return {name, [=](Settings& s, const std::string& text) { member(s) = as_bool(parse_literal(text)) != inverted; },
          [=](const Settings& s) { return member(s) != inverted ? "True" : "False"; }};
}

template <class Member>
ConfigKey integer_key(const std::string& name, Member member, cli::Range<int64_t> range) {
  return {name,
          [=](Settings& s, const std::string& text) {
            auto& field = member(s);
            field = static_cast<std::remove_reference_t<decltype(field)>>(as_integer(parse_literal(text), range));
          },
          [=](const Settings& s) { return fmt::format("{}", member(s)); }};
}

template <class Member>
ConfigKey number_key(const std::string& name, Member member, cli::Range<double> range) {
  return {name,
          [=](Settings& s, const std::string& text) {
            auto& field = member(s);
            field = static_cast<std::remove_reference_t<decltype(field)>>(as_number(parse_literal(text), range));
          },
          [=](const Settings& s) { return fmt::format("{}", member(s)); }};
}

// Marks the keys as part of the model's identity.
std::vector<ConfigKey> of_model(std::vector<ConfigKey> keys);

// An alias of another key, used by one of the programs; described under that key.
ConfigKey alias_key(const std::string& name, ConfigKey other);

}  // namespace dtrain::mask_rcnn
