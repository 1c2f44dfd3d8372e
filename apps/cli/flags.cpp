// Lookup of flags by name, and their state after parsing.
#include "apps/cli/flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/values.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

template <class T>
std::string show(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

FlagSet::FlagSet(std::string program, std::string usage, std::string about)
    : program_(std::move(program)), usage_(std::move(usage)), about_(std::move(about)) {}

Flag& FlagSet::declare(const std::string& name, std::string type, std::string initial, std::string meaning,
                       std::function<void(const std::string&)> set) {
  DT_CHECK(find(name).flag == nullptr, "flag --", name, " is declared twice");
  Flag& flag = flags_.emplace_back();
  flag.name_ = name;
  flag.group_ = group_;
  flag.type_ = std::move(type);
  flag.initial_ = flag.text_ = std::move(initial);
  flag.meaning_ = std::move(meaning);
  flag.set_ = std::move(set);
  return flag;
}

Flag& FlagSet::add(const std::string& name, bool& value, std::string meaning) {
  return declare(name, "bool", value ? "true" : "false", std::move(meaning),
                 [&value](const std::string& text) { value = parse_bool(text); });
}

Flag& FlagSet::add(const std::string& name, int64_t& value, std::string meaning, Range<int64_t> range) {
  return declare(name, "int", fmt::format("{}", value), std::move(meaning),
                 [&value, range](const std::string& text) { value = parse_number<int64_t>(text, range); });
}

Flag& FlagSet::add(const std::string& name, std::optional<int64_t>& value, std::string meaning, Range<int64_t> range) {
  return declare(name, "int", show(value), std::move(meaning),
                 [&value, range](const std::string& text) { value = parse_number<int64_t>(text, range); });
}

Flag& FlagSet::add(const std::string& name, double& value, std::string meaning, Range<double> range) {
  return declare(name, "float", fmt::format("{}", value), std::move(meaning),
                 [&value, range](const std::string& text) { value = parse_number<double>(text, range); });
}

Flag& FlagSet::add(const std::string& name, std::optional<double>& value, std::string meaning, Range<double> range) {
  return declare(name, "float", show(value), std::move(meaning),
                 [&value, range](const std::string& text) { value = parse_number<double>(text, range); });
}

Flag& FlagSet::add(const std::string& name, std::string& value, std::string meaning) {
  return declare(name, "string", value, std::move(meaning), [&value](const std::string& text) { value = text; });
}

Flag& FlagSet::add(const std::string& name, std::vector<std::string>& value, std::string meaning) {
  return declare(name, "list", fmt::format("{}", fmt::join(value, ",")), std::move(meaning),
                 [&value](const std::string& text) { value = split_list(text); });
}

Flag& FlagSet::add_choice(const std::string& name, std::string& value, std::vector<std::string> choices,
                          std::string meaning) {
  std::string type = fmt::format("{}", fmt::join(choices, "|"));
  return declare(name, type, value, std::move(meaning),
                 [&value, choices](const std::string& text) { value = parse_choice(text, choices); });
}

Flag& FlagSet::add_unread(const std::string& name, std::string type, std::string initial, std::string meaning) {
  const auto check = [type](const std::string& text) {
    if (type == "int") parse_number<int64_t>(text, {0, 1'000'000'000'000});
    normalised(type, text);
  };
  return declare(name, type, std::move(initial), std::move(meaning), check);
}

FlagSet::Spelling FlagSet::find(std::string_view name) {
  for (Flag& flag : flags_) {
    if (flag.name_ == name || std::ranges::find(flag.short_names_, name) != flag.short_names_.end())
      return {&flag, nullptr};
    for (const Flag::Source& former : flag.former_names_)
      if (former.name == name) return {&flag, &former};
  }
  return {};
}

Flag& FlagSet::declared(const std::string& name) {
  static_cast<void>(at(name));
  return *find(name).flag;
}

const Flag& FlagSet::at(const std::string& name) const {
  const auto flag = std::ranges::find(flags_, name, &Flag::name_);
  DT_CHECK(flag != flags_.end(), "no flag --", name, " is declared");
  return *flag;
}

std::vector<std::string> FlagSet::notices() const {
  std::vector<std::string> notices = notices_;
  for (const Flag& flag : flags_)
    if (flag.fate_ == Flag::Fate::no_effect && !flag.has_default())
      notices.push_back(fmt::format("--{}={} has no effect: {}", flag.name_, flag.text_, flag.reason_));
  return notices;
}

void FlagSet::check_refused() const {
  for (const Flag& flag : flags_) {
    if (flag.fate_ != Flag::Fate::refused || flag.has_default()) continue;
    throw Error(fmt::format("--{}={} is not supported: {}; leave the flag out{}", flag.name_, flag.text_, flag.reason_,
                            flag.initial_.empty() ? "" : fmt::format(" or set it to {}", flag.initial_)));
  }
}

std::vector<std::pair<std::string, std::string>> FlagSet::settings_that_must_agree() const {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const Flag& flag : flags_)
    if (!flag.differs_) settings.emplace_back("--" + flag.name_, flag.text_);
  return settings;
}

std::map<std::string, std::string> FlagSet::recorded(bool identity) const {
  std::map<std::string, std::string> texts;
  for (const Flag& flag : flags_)
    for (const Flag::Recorded& recorded : flag.recorded_) {
      if (recorded.identity != identity || recorded.resolved_later) continue;
      const std::string text = recorded.text ? recorded.text() : flag.text_;
      if (!text.empty()) texts.emplace(recorded.key, text);
    }
  return texts;
}

std::set<std::string> FlagSet::identity_keys() const {
  std::set<std::string> keys;
  for (const Flag& flag : flags_)
    for (const Flag::Recorded& recorded : flag.recorded_)
      if (recorded.identity) keys.insert(recorded.key);
  return keys;
}

std::map<std::string, std::vector<std::string>> FlagSet::names() const {
  std::map<std::string, std::vector<std::string>> names;
  for (const Flag& flag : flags_) names[flag.group_].push_back(flag.name_);
  return names;
}

}  // namespace dtrain::cli
