#include "apps/mask_rcnn/loaded_detector.h"

#include "apps/cli/machine.h"
#include "apps/cli/messages.h"

namespace dtrain::mask_rcnn {
namespace {

models::DetectorOptions options_for(Settings settings, const std::string& path) {
  take_classes(settings, path);
  return settings.detector;
}

models::LoadedWeights loaded_into(ParameterStore& store, const std::string& path) {
  store.allocate(0, {.gradients = false});
  store.context().fill_zero(store.values());
  models::LoadedWeights loaded = models::load_detector(store, path, Fault::checkpoint);
  print_conversions(loaded.report, path);
  return loaded;
}

}  // namespace

void take_classes(Settings& settings, const std::string& path) {
  if (const auto classes = models::classes_of_weights(path, Fault::checkpoint)) settings.detector.classes = *classes;
}

void print_conversions(const WeightReport& report, const std::string& path) {
  for (const std::string& notice : report.conversions()) cli::print_message("note", concat(path, ": ", notice));
}

void require_complete(const WeightReport& report, const std::string& path) {
  if (!(report.missing.empty() && report.mismatched.empty()))
    throw Error(Fault::checkpoint, concat(path, ": does not fit the detector: ", report.summary()));
}

LoadedDetector::LoadedDetector(const Settings& settings, const std::string& path)
    : context(cli::Machine().make_context()),
      store(*context),
      detector(store, options_for(settings, path)),
      weights(loaded_into(store, path)) {}

}  // namespace dtrain::mask_rcnn
