// Export of a classifier with its weights to ONNX.
#pragma once

#include <iosfwd>
#include <string>

#include "apps/cli/loaded_classifier.h"

namespace dtrain::cli {

// Exports the model to the file `onnx`, see models::export_onnx, and reports it on `out`. `set`: the flags that were
// given.
void export_classifier(const ClassifierFlags& flags, const FlagSet& set, int64_t threads, const std::string& onnx,
                       std::ostream& out);

}  // namespace dtrain::cli
