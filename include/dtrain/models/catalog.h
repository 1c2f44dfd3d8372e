// Catalogue of image classifiers, by their names in tf_cnn_benchmarks.
#pragma once

#include <optional>
#include <string_view>

#include "dtrain/models/classifier.h"

namespace dtrain::models {

// All entries in listing order. A model has one entry per data set that it has a variant for.
const std::vector<ClassifierInfo>& classifiers();
// Unique model names.
std::vector<std::string> classifier_names();
// The variant of the model for `dataset`, or else its first one, since any model can train on any data set. Null for an
// unknown name.
const ClassifierInfo* find_classifier(std::string_view name, std::string_view dataset);
// The same. Throws Error for an unknown name and suggests the nearest known one.
const ClassifierInfo& classifier_info(std::string_view name, std::string_view dataset);
// The program to use for a tf_cnn_benchmarks model that is not an image classifier; null for any other name.
const char* other_purpose(const std::string& name);

// Registers the model's parameters in `store` and returns the model. Call store.allocate() next. Throws Error if the
// image size is too small for the model.
Classifier make_classifier(ParameterStore& store, const ClassifierInfo& info, const ClassifierOptions& options = {});

// Whether a model built with `options` also accepts images of `image_size` pixels. Models with global pooling do;
// others have a layer whose weight shape depends on the image size. Throws Error if the image size is too small.
bool takes_images_of(Context& context, const ClassifierInfo& info, const ClassifierOptions& options,
                     int64_t image_size);

// The model's learning-rate schedule. Where the rate scales with the batch, `rate_at_256` replaces the rate for 256
// images.
Schedule default_schedule(const ClassifierInfo& info, int64_t global_batch, double steps_per_epoch,
                          std::optional<double> rate_at_256 = {});

}  // namespace dtrain::models
