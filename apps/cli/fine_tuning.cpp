#include "apps/cli/fine_tuning.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dtrain/models/parts.h"

namespace dtrain::cli {

std::string fine_tune(ParameterStore& store, const std::vector<std::string>& freeze, double head_factor) {
  for (const std::string& part : freeze)
    DT_CHECK(models::freeze_part(store, part), "--freeze: the model has no part '", part, "'; expected ",
             fmt::format("{}", fmt::join(models::part_names(store), ", ")), ", or a longer path such as layer1.0");
  if (head_factor != 1) store.set_multipliers(models::head_of(store), {.rate = static_cast<float>(head_factor)});
  if (freeze.empty()) return "";
  int64_t frozen = 0;
  for (const Parameter& one : store.parameters()) frozen += one.options().frozen ? one.shape.count() : 0;
  DT_CHECK(frozen < store.parameter_count(), "--freeze=", fmt::format("{}", fmt::join(freeze, ",")),
           ": all parameters of the model are frozen, none is left to train");
  return fmt::format("--freeze={}: {} of {} parameters are not trained", fmt::join(freeze, ","), frozen,
                     store.parameter_count());
}

std::string initial_values(const WeightReport& report) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names = report.missing;
  for (const std::string& text : report.mismatched) {
    const size_t colon = text.find(": ");
    names.push_back(colon == text.npos ? text : text.substr(0, colon) + " (" + text.substr(colon + 2) + ")");
  }
  if (names.empty()) return "";
  const size_t count = names.size();
  names.resize(std::min(count, kMost));
  return fmt::format("{} tensors keep their initial values: {}{}", count, fmt::join(names, ", "),
                     count > kMost ? fmt::format(", and {} more", count - kMost) : "");
}

}  // namespace dtrain::cli
