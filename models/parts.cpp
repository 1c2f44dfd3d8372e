#include "dtrain/models/parts.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string_view>

namespace dtrain::models {
namespace {

constexpr std::string_view kBackbone = "backbone.body.", kStem = "stem", kFirstStage = "layer1.";

// Names of parameters and buffers in order of registration.
template <class Visit>
void for_each_list(const ParameterStore& store, const Visit& visit) {
  std::vector<std::string> parameters, buffers;
  for (const Parameter& one : store.parameters()) parameters.push_back(one.name);
  for (const Buffer& one : store.buffers()) buffers.push_back(one.name);
  visit(parameters);
  visit(buffers);
}

// Prefix of the names of a backbone; empty for a model that is one.
std::string body_of(const ParameterStore& store) {
  const bool detects =
      std::ranges::any_of(store.parameters(), [](const Parameter& one) { return one.name.starts_with(kBackbone); });
  return detects ? std::string(kBackbone) : "";
}

std::set<std::string> stem_of(const ParameterStore& store) {
  const std::string body = body_of(store), stage = concat(body, kFirstStage);
  std::set<std::string> stem;
  for_each_list(store, [&](const std::vector<std::string>& names) {
    const auto first = std::ranges::find_if(names, [&](const std::string& name) { return name.starts_with(stage); });
    if (first == names.end()) return;
    for (auto name = names.begin(); name != first; ++name)
      if (name->starts_with(body)) stem.insert(*name);
  });
  return stem;
}

}  // namespace

std::vector<std::string> part_names(const ParameterStore& store) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view part) {
    if (std::ranges::find(parts, part) == parts.end()) parts.emplace_back(part);
  };
  if (!stem_of(store).empty()) add(kStem);
  const std::string body = body_of(store);
  for (const std::string& base : std::set<std::string>{body, ""} | std::views::reverse)
    for (const Parameter& one : store.parameters())
      if (one.name.starts_with(base))
        add(std::string_view(one.name).substr(base.size(), one.name.find('.', base.size()) - base.size()));
  return parts;
}

bool freeze_part(ParameterStore& store, const std::string& part) {
  if (part == kStem) {
    if (const std::set<std::string> stem = stem_of(store); !stem.empty()) {
      store.freeze([&](const std::string& name) { return stem.contains(name); });
      return true;
    }
  }
  const auto is_within = [](const std::string& name, const std::string& path) {
    return name == path || name.starts_with(path + ".");
  };
  const std::string in_body = body_of(store) + part;
  const auto accepts = [&](const std::string& name) { return is_within(name, part) || is_within(name, in_body); };
  bool known = false;
  for_each_list(store, [&](const std::vector<std::string>& names) { known |= std::ranges::any_of(names, accepts); });
  if (known) store.freeze(accepts);
  return known;
}

NameFilter head_of(const ParameterStore& store) {
  const auto any = [&](const auto& accepts) {
    return std::ranges::any_of(store.parameters(), [&](const Parameter& one) { return accepts(one.name); });
  };
  const auto of_detector = [](const std::string& name) {
    return name.find(".box_predictor.") != name.npos || name.find(".mask_predictor.") != name.npos;
  };
  if (any(of_detector)) return of_detector;
  const auto of_ssd = [](const std::string& name) { return name.starts_with("conf.") || name.starts_with("loc."); };
  if (any(of_ssd)) return of_ssd;
  for (const Parameter& one : store.parameters() | std::views::reverse)
    if (one.shape.rank() == 2) return NameFilter(one.name.substr(0, one.name.rfind('.') + 1));
  throw Error("the model has no linear layer with one row per class");
}

}  // namespace dtrain::models
