// The catalogue of the image classifiers, by tf_cnn_benchmarks' names.
#pragma once

#include <optional>

#include "models/classifier.h"

namespace dtrain::models {

// All of them, in the order they are listed for people: a model has an entry for each data set that it has a form for.
const std::vector<ClassifierInfo>& classifiers();
// Their names, each once.
std::vector<std::string> classifier_names();
// The model in its form for `dataset`, else, since any model takes any data set, in another one. Null where no model
// has the name.
const ClassifierInfo* find_classifier(const std::string& name, const std::string& dataset);
// The same. Throws Error naming the nearest known name where no model has this one.
const ClassifierInfo& classifier_info(const std::string& name, const std::string& dataset);
// What a model of tf_cnn_benchmarks that is no image classifier does instead; null for any other name.
const char* other_purpose(const std::string& name);

// Registers the model's parameters in `store` and returns it. Call store.allocate() next. Throws Error where the image
// is too small for the model.
Classifier make_classifier(ParameterStore& store, const ClassifierInfo& info, const ClassifierOptions& options = {});

// Whether a model that was made with `options` takes images of `image_size` pixels, too: those that pool over all that
// is left do, others have a layer whose weights depend on the size. Throws Error where the image is too small for it.
bool takes_images_of(Context& context, const ClassifierInfo& info, const ClassifierOptions& options,
                     int64_t image_size);

// The model's learning rates. Where they grow with the batch, `rate_at_256` replaces the rate of 256 images.
Schedule default_schedule(const ClassifierInfo& info, int64_t global_batch, double steps_per_epoch,
                          std::optional<double> rate_at_256 = {});

}  // namespace dtrain::models
