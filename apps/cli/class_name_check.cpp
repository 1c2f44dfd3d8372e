#include "apps/cli/class_name_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/recorded_weights.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

bool is_described(const std::string& name, const std::string& recorded) {
  return name.size() == 9 && name[0] == 'n' && name.find_first_not_of("0123456789", 1) == name.npos &&
         recorded.starts_with(name + " ");
}

}  // namespace

void require_equal_names(const std::vector<std::string>& names, const std::string& data_dir,
                         const std::string& weights_file) {
  const std::vector<std::string> recorded = recorded_classifier(weights_file).class_names;
  for (size_t i = 0; i < std::min(names.size(), recorded.size()); ++i)
    if (recorded[i] != names[i] && !is_described(names[i], recorded[i]))
      throw Error(
          Fault::data,
          fmt::format("{}: class {} is '{}', and '{}' in {}; evaluate with the classes of the training (a list: "
                      "with its train.csv or classes.txt), or with --nocheck_class_names if both mean the same",
                      data_dir, i, names[i], recorded[i], weights_file));
}

}  // namespace dtrain::cli
