#include "dtrain/models/detection/weight_names.h"

#include <algorithm>
#include <array>
#include <optional>

#include "models/detection/detectron2_names.h"
#include "models/detection/tensorpack_names.h"

namespace dtrain::models {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Numbers matched by the '#' of `form`, if `name` matches.
std::optional<std::vector<int>> numbers_in(std::string_view form, std::string_view name) {
  constexpr size_t kDigits = 4;
  std::vector<int> numbers;
  for (const char c : form) {
    size_t taken = 0;
    if (c == '#') {
      int number = 0;
      while (taken < name.size() && taken < kDigits && is_digit(name[taken]))
        number = 10 * number + name[taken++] - '0';
      numbers.push_back(number);
    } else if (!name.empty() && name[0] == c) {
      taken = 1;
    }
    if (taken == 0) return {};
    name.remove_prefix(taken);
  }
  if (!name.empty()) return {};
  return numbers;
}

std::string filled(std::string_view form, const std::vector<int>& numbers, int shift) {
  std::string name;
  size_t next = 0;
  for (const char c : form) {
    if (c != '#')
      name += c;
    else if (const int number = numbers[next] + (next == 0 ? shift : 0); next++, number >= 0)
      name += std::to_string(number);
    else
      return "";
  }
  return name;
}

ForeignName translated(std::string_view name, std::span<const LayerName> layers, std::span<const PartName> parts) {
  for (const PartName& part : parts) {
    if (!name.ends_with(part.ours)) continue;
    const std::string_view path = name.substr(0, name.size() - part.ours.size());
    for (const LayerName& layer : layers) {
      const auto numbers = numbers_in(layer.ours, path);
      if (!numbers) continue;
      const std::string theirs = filled(layer.theirs, *numbers, layer.shift);
      if (!theirs.empty()) return {theirs + std::string(part.theirs), layer};
    }
  }
  return {};
}

}  // namespace

const WeightNames& torchvision_names() {
  static constexpr std::string_view kBatchCounts[] = {".num_batches_tracked"};
  static constexpr std::string_view kScoreBiases[] = {"roi_heads.box_predictor.cls_score.bias",
                                                      "roi_heads.stage1.box_predictor.cls_score.bias"};
  static const WeightNames names{"torchvision", "torchvision", ArrayOrder::torch, {}, {}, {}, {},
                                 kBatchCounts,  kScoreBiases};
  return names;
}

std::span<const WeightNames* const> all_weight_names() {
  static const std::array all = {&torchvision_names(), &tensorpack_names(), &detectron2_names()};
  return all;
}

ForeignName foreign_name(const WeightNames& names, const std::string& ours) {
  if (names.layers.empty() && names.norms.empty()) return {ours, {}};
  ForeignName norm = translated(ours, names.norms, names.of_norm);
  return norm.text.empty() ? translated(ours, names.layers, names.of_layer) : norm;
}

ForeignName foreign_name(const WeightNames& names, const ParameterStore& store, const std::string& ours) {
  ForeignName name = foreign_name(names, ours);
  if (names.in_form != nullptr) name.text = names.in_form(store, ours, std::move(name.text));
  return name;
}

}  // namespace dtrain::models
