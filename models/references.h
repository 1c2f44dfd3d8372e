// What others have published of the models of the catalogue: accuracies, and weights that load by name.
#pragma once

#include <string_view>

#include "models/classifier.h"

namespace dtrain::models {

struct ModelReference {
  std::string_view name, dataset;
  double top1 = 0;  // accuracy in percent, of one centre crop or of the whole image; 0: none that is known to hold here
  std::string_view source{};   // who says so
  std::string_view weights{};  // the libraries whose files load by name; in brackets what then differs from them
};

// Null where nothing has been published.
const ModelReference* reference_of(const ClassifierInfo& info);

}  // namespace dtrain::models
