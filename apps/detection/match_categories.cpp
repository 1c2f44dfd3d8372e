#include "apps/detection/match_categories.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "apps/detection/recorded_categories.h"
#include "dtrain/core/error.h"

namespace dtrain::detection {
namespace {

using Categories = std::vector<data::coco::Category>;

// None if a name is missing or ambiguous.
std::optional<std::set<std::string>> names_of(const Categories& categories) {
  std::set<std::string> names;
  for (const data::coco::Category& one : categories)
    if (one.name.empty() || !names.insert(one.name).second) return {};
  return names;
}

std::string described(const Categories& all, size_t i) {
  return i < all.size() ? fmt::format("{} ({})", all[i].id, all[i].name) : "missing";
}

[[noreturn]] void refuse(const Categories& found, const Categories& learnt, size_t i, const std::string& path) {
  throw Error(Fault::data, fmt::format("{}: category {} of the detector is {}, expected {}: list the same categories "
                                       "in all splits, or choose them by DATA.CLASS_NAMES",
                                       path, i + 1, described(found, i), described(learnt, i)));
}

// Whether ids are equal at each index.
CategoryMatch match_by_id(const Categories& found, const Categories& learnt, const std::string& path) {
  for (size_t i = 0; i < std::max(found.size(), learnt.size()); ++i)
    if (i >= found.size() || i >= learnt.size() || found[i].id != learnt[i].id) refuse(found, learnt, i, path);
  return {};
}

CategoryMatch match_by_name(const Categories& found, const Categories& learnt, const std::string& path) {
  CategoryMatch match;
  bool in_order = true;
  for (size_t i = 0; i < learnt.size(); ++i) {
    const auto same = std::ranges::find(found, learnt[i].name, &data::coco::Category::name);
    match.classes.push_back(learnt[i].name);
    in_order = in_order && same - found.begin() == static_cast<std::ptrdiff_t>(i);
    if (match.notice.empty() && same->id != learnt[i].id)
      match.notice = fmt::format("{}: category {} has the id {}, and {} in the training data: matched by name", path,
                                 learnt[i].name, same->id, learnt[i].id);
  }
  if (in_order) match.classes.clear();
  return match;
}

}  // namespace

CategoryMatch match_categories(const Categories& found, const Categories& learnt, const std::string& path) {
  const auto found_names = names_of(found), learnt_names = names_of(learnt);
  if (!found_names || !learnt_names) return match_by_id(found, learnt, path);
  if (*found_names == *learnt_names) return match_by_name(found, learnt, path);
  for (size_t i = 0; i < std::max(found.size(), learnt.size()); ++i)
    if (i >= found.size() || i >= learnt.size() || found[i].id != learnt[i].id || found[i].name != learnt[i].name)
      refuse(found, learnt, i, path);
  return {};
}

Categories known_categories(const std::string& weights, const std::string& annotations,
                            const std::vector<std::string>& classes, std::vector<std::string>& notices) {
  Categories learnt = recorded_categories(weights);
  if (annotations.empty()) return learnt;
  Categories found = categories_in(annotations, classes);
  if (learnt.empty()) return found;
  const CategoryMatch match = match_categories(found, learnt, annotations);
  if (!match.notice.empty()) notices.push_back(match.notice);
  return match.classes.empty() ? found : categories_in(annotations, match.classes);
}

}  // namespace dtrain::detection
