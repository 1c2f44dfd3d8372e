// Published accuracies of catalogue models and sources of compatible weights.
#pragma once

#include <string_view>

#include "dtrain/models/classifier.h"

namespace dtrain::models {

struct ModelReference {
  std::string_view name, dataset;
  double top1 = 0;  // accuracy in percent, of a centre crop or the whole image; 0: none published for this variant
  std::string_view source{};   // of the accuracy
  std::string_view weights{};  // libraries with compatible weight files; differences in brackets
};

// Null if nothing has been published.
const ModelReference* reference_of(const ClassifierInfo& info);

}  // namespace dtrain::models
