// Attributes of flags.
#include "apps/cli/flag.h"

#include <utility>

#include "dtrain/core/error.h"

namespace dtrain::cli {

Flag& Flag::may_differ_per_rank() {
  differs_ = true;
  return *this;
}

Flag& Flag::identity(std::string key, Text text) {
  recorded_.push_back({.key = std::move(key), .text = std::move(text)});
  return *this;
}

Flag& Flag::identity_once_resolved(std::string key) {
  recorded_.push_back({.key = std::move(key), .text = {}, .identity = true, .resolved_later = true});
  return *this;
}

Flag& Flag::setting(std::string key, Text text) {
  recorded_.push_back({.key = std::move(key), .text = std::move(text), .identity = false});
  return *this;
}

Flag& Flag::former_name(std::string name, Translation translate) {
  former_names_.push_back({std::move(name), std::move(translate)});
  return *this;
}

Flag& Flag::short_name(std::string name) {
  short_names_.push_back(std::move(name));
  return *this;
}

Flag& Flag::set_by(std::string variable, Translation translate) {
  variables_.push_back({std::move(variable), std::move(translate)});
  return *this;
}

Flag& Flag::may_be_remote() {
  may_be_remote_ = true;
  return *this;
}

Flag& Flag::no_effect(std::string reason) {
  fate_ = Fate::no_effect;
  reason_ = std::move(reason);
  return *this;
}

Flag& Flag::refused(std::string reason) {
  fate_ = Fate::refused;
  reason_ = std::move(reason);
  return *this;
}

void refuse(std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules) DT_CHECK(!rule.broken, rule.message);
}

}  // namespace dtrain::cli
