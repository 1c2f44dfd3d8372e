#include "apps/cli/export_classifier.h"

#include <ostream>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "dtrain/models/conventions.h"
#include "dtrain/models/onnx/classifier.h"

namespace dtrain::cli {

void export_classifier(const ClassifierFlags& flags, const FlagSet& set, int64_t threads, const std::string& onnx,
                       std::ostream& out) {
  const LoadedClassifier loaded(flags, set, inference_machine("cpu", threads));
  const models::Classifier& model = loaded.model();
  models::export_onnx(loaded.store(), model, loaded.normalization(), onnx);
  out << fmt::format("{}: {}{}, {} classes, images of {} x {}\n", escaped(onnx), model.name,
                     models::describe(flags.conventions.conventions()), model.classes, model.image_size,
                     model.image_size)
      << std::flush;
}

}  // namespace dtrain::cli
