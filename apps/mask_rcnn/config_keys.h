// The keys of TensorPack's and AWS Mask R-CNN's config.py, and what each is here.
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
  // From the text of a value. Throws Error saying what was expected and what was found.
  std::function<void(Settings&, const std::string&)> set;
  // The text of the value; nothing where another key describes the settings.
  std::function<std::optional<std::string>(const Settings&)> get = [](const Settings&) { return std::nullopt; };
  std::string notice{};   // where the key has no effect
  bool of_model = false;  // a checkpoint that was trained with another value is of another model, and is not continued
};

// Rows of the table, by the part of the settings that they are about.
std::vector<ConfigKey> data_keys();
std::vector<ConfigKey> image_keys();
std::vector<ConfigKey> training_keys();
std::vector<ConfigKey> backbone_keys();
std::vector<ConfigKey> proposal_keys();
std::vector<ConfigKey> head_keys();
std::vector<ConfigKey> machinery_keys();  // no effect, or a single value that is served
// The preset among recorded settings, which no key changes.
inline constexpr char kPreset[] = "PRESET";
// All of them.
const std::vector<ConfigKey>& config_keys();
// Throws Error naming the nearest one where there is none.
const ConfigKey& config_key(const std::string& name);

// Limits that several parts share.
inline constexpr cli::Range<int64_t> kChannelCount{1, 1 << 16}, kBoxCount{1, 1 << 20};
inline constexpr cli::Range<double> kPositiveSize{1e-6, 1e6};

// As Python writes a list.
std::string listed(const auto& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// Makers of rows. `member` returns a reference to the field, in settings that may be const.

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

// The same keys, as those that make the model what it is.
std::vector<ConfigKey> of_model(std::vector<ConfigKey> keys);

// The same as another key, under a name that one of the programs had for it; it is described by that one.
ConfigKey alias_key(const std::string& name, ConfigKey other);

}  // namespace dtrain::mask_rcnn
