#include "dtrain/models/classifier_weights.h"

#include <algorithm>
#include <ranges>

#include "models/timm_names.h"

namespace dtrain::models {
namespace {

std::vector<const WeightNames*> names_of(const ClassifierInfo& info) {
  std::vector<const WeightNames*> names = {&torchvision_names()};
  if (const WeightNames* const timm = timm_names(info)) names.push_back(timm);
  return names;
}

}  // namespace

int64_t classes_of_weights(const ParameterStore& store, const ClassifierInfo& info, const std::string& path,
                           Fault fault) {
  const ArrayFile file(path, fault);
  auto matrices = store.parameters() | std::views::reverse |
                  std::views::filter([](const Parameter& one) { return one.shape.rank() == 2; });
  DT_CHECK(!matrices.empty(), "model ", info.name, " has no linear layer with one row per class");
  const Parameter& last = matrices.front();
  for (const WeightNames* const names : names_of(info)) {
    const ArrayEntry* const entry = file.find(foreign_name(*names, store, last.name).text);
    if (!entry || entry->shape.rank() < 2 || entry->shape[0] < 1) continue;
    // Bounds the memory of the model by the size of the file.
    if (entry->shape.count() / entry->shape[0] != last.shape[1])
      throw Error(fault, concat(path, ": does not fit ", info.name, ": ", entry->name, " is ", entry->shape,
                                ", expected rows of ", last.shape[1], " elements"));
    return entry->shape[0];
  }
  throw Error(fault, concat(path, ": no weight ", last.name, " of the last layer of ", info.name,
                            ": these are not the weights of this model"));
}

LoadedWeights load_classifier(ParameterStore& store, const ClassifierInfo& info, const std::string& path, Fault fault) {
  return load_by_names(store, names_of(info), path, fault);
}

Renaming rename_classifier(const ParameterStore& store, const ClassifierInfo& info, const ArrayFile& file,
                           const std::string& program) {
  DT_CHECK(program == "torchvision" || program == "timm", "classifiers have no names of ", program,
           "; expected torchvision or timm");
  const auto names = names_of(info);
  return rename_arrays(store, names, program == "timm" ? *names.back() : *names.front(), file);
}

}  // namespace dtrain::models
