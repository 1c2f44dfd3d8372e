#include "dtrain/models/catalog.h"

#include <algorithm>

#include "dtrain/models/conventions.h"
#include "dtrain/models/resnet.h"
#include "libdtrain/core/nearest.h"
#include "models/alexnet.h"
#include "models/densenet.h"
#include "models/googlenet.h"
#include "models/inception.h"
#include "models/mobilenet.h"
#include "models/nasnet.h"
#include "models/overfeat.h"
#include "models/resnet_v2.h"
#include "models/small.h"
#include "models/vgg.h"

namespace dtrain::models {
namespace {

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> table;
    for (const auto& family :
         {small_entries, vgg_entries, resnet_entries, resnet_v2_entries, inception_entries, googlenet_entries,
          alexnet_entries, densenet_entries, overfeat_entries, mobilenet_entries, nasnet_entries})
      std::ranges::move(family(), std::back_inserter(table));
    return table;
  }();
  return all;
}

}  // namespace

const std::vector<ClassifierInfo>& classifiers() {
  static const std::vector<ClassifierInfo> infos = [] {
    std::vector<ClassifierInfo> all;
    for (const Entry& entry : entries()) all.push_back(entry.info);
    return all;
  }();
  return infos;
}

std::vector<std::string> classifier_names() {
  std::vector<std::string> names;
  for (const ClassifierInfo& info : classifiers())
    if (std::ranges::find(names, info.name) == names.end()) names.push_back(info.name);
  return names;
}

const ClassifierInfo* find_classifier(std::string_view name, std::string_view dataset) {
  const ClassifierInfo* found = nullptr;
  for (const ClassifierInfo& info : classifiers())
    if (info.name == name && (found == nullptr || info.dataset == dataset)) found = &info;
  return found;
}

const char* other_purpose(const std::string& name) {
  if (name == "deepspeech2") return "it recognises speech";
  if (name == "ncf") return "it recommends films to users";
  return nullptr;
}

const ClassifierInfo& classifier_info(std::string_view name, std::string_view dataset) {
  if (const ClassifierInfo* found = find_classifier(name, dataset)) return *found;
  const auto meant = nearest(name, classifier_names());
  throw Error(concat("unknown model '", name, "' for ", dataset, meant ? "; did you mean " + *meant + "?" : ""));
}

Classifier make_classifier(ParameterStore& store, const ClassifierInfo& info, const ClassifierOptions& options) {
  const auto entry = std::ranges::find_if(entries(), [&](const Entry& candidate) {
    return candidate.info.name == info.name && candidate.info.dataset == info.dataset;
  });
  DT_CHECK(entry != entries().end(), "unknown model '", info.name, "' for ", info.dataset);
  DT_CHECK(options.classes >= 0 && options.image_size >= 0, "model ", info.name, " with ", options.classes,
           " classes and images of ", options.image_size, " pixels");
  DT_CHECK(!options.auxiliary_head || info.auxiliary_head, "model ", info.name, " has no auxiliary head");
  Classifier model{info.name, options.classes ? options.classes : info.classes,
                   options.image_size ? options.image_size : info.image_size};
  Trace trace(model.image_size);
  model.network =
      entry->build({store, trace, model.classes, options.statistics, options.auxiliary_head, options.conventions});
  initialize(store, trace.layers, options.conventions);
  for (const LayerWork& layer : trace.layers) model.multiply_adds += layer.multiply_adds;
  model.layers = std::move(trace.layers);
  return model;
}

bool takes_images_of(Context& context, const ClassifierInfo& info, const ClassifierOptions& options,
                     int64_t image_size) {
  ParameterStore made(context), other(context);
  ClassifierOptions resized = options;
  resized.image_size = image_size;
  make_classifier(made, info, options);
  make_classifier(other, info, resized);
  return std::ranges::equal(made.parameters(), other.parameters(), {}, &Parameter::shape, &Parameter::shape);
}

Schedule default_schedule(const ClassifierInfo& info, int64_t global_batch, double steps_per_epoch,
                          std::optional<double> rate_at_256) {
  double base = info.base_rate;
  if (info.rate_grows_with_batch) base = rate_at_256.value_or(base) * static_cast<double>(global_batch) / 256;
  if (info.schedule != nullptr) return info.schedule(base, steps_per_epoch);
  return {.base = base, .steps_per_epoch = steps_per_epoch};
}

}  // namespace dtrain::models
