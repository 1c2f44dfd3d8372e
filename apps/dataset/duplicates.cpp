#include "apps/dataset/duplicates.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/messages.h"

namespace dtrain::dataset {

void sort_duplicates(std::vector<DuplicateImages>& duplicates) {
  const auto key = [](const DuplicateImages& one) { return std::tie(one.in_several_splits, one.in_several_classes); };
  std::ranges::sort(duplicates, [&](const DuplicateImages& a, const DuplicateImages& b) {
    return key(a) != key(b) ? key(a) > key(b) : a.files < b.files;
  });
}

std::string duplicates_text(const std::vector<DuplicateImages>& duplicates, size_t examples, bool has_classes) {
  uint64_t images = 0, splits = 0, classes = 0;
  for (const DuplicateImages& group : duplicates) {
    images += group.files.size() - 1;
    splits += group.in_several_splits ? 1 : 0;
    classes += group.in_several_classes ? 1 : 0;
  }
  std::string text =
      fmt::format("images with the bytes of another one: {}; groups of them in several splits: {}", images, splits);
  text += has_classes ? fmt::format(", in several classes: {}\n", classes) : "\n";
  for (size_t i = 0; i < std::min(examples, duplicates.size()); ++i)
    text += fmt::format("  {}\n", cli::escaped(fmt::format("{}", fmt::join(duplicates[i].files, " = "))));
  if (duplicates.size() > examples) text += fmt::format("  and {} more\n", duplicates.size() - examples);
  return text;
}

nlohmann::ordered_json duplicates_json(const std::vector<DuplicateImages>& duplicates, bool has_classes) {
  auto all = nlohmann::ordered_json::array();
  for (const DuplicateImages& group : duplicates) {
    nlohmann::ordered_json one = {{"files", group.files}, {"in_several_splits", group.in_several_splits}};
    if (has_classes) one["in_several_classes"] = group.in_several_classes;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace dtrain::dataset
