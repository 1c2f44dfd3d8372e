#include "apps/info/models.h"

#include <fmt/format.h>

#include "dtrain/autograd/parameters.h"
#include "dtrain/core/context.h"
#include "dtrain/models/catalog.h"
#include "models/references.h"

namespace dtrain::info {

std::string table_of_models() {
  std::string table =
      "| model | data set | image size | classes | parameters | multiply-adds | default batch | published top-1 | "
      "weights that load |\n|---|---|---|---|---|---|---|---|---|\n";
  const auto context = make_cpu_context({.threads = 1});
  for (const models::ClassifierInfo& info : models::classifiers()) {
    ParameterStore store(*context);
    const models::Classifier model = models::make_classifier(store, info);
    const models::ModelReference* const reference = models::reference_of(info);
    const bool accurate = reference && reference->top1 > 0;
    table += fmt::format("| `{}` | {} | {} | {} | {:.2f} M | {:.2f} G | {} | {} | {} |\n", info.name, info.dataset,
                         model.image_size, model.classes, 1e-6 * static_cast<double>(store.parameter_count()),
                         1e-9 * static_cast<double>(model.multiply_adds), info.batch_size,
                         accurate ? fmt::format("{:.4g} % ({})", reference->top1, reference->source) : "",
                         reference ? reference->weights : "");
  }
  return table;
}

}  // namespace dtrain::info
