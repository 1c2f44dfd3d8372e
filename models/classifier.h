// The image classifiers, by tf_cnn_benchmarks' names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/tape.h"
#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/train/schedule.h"

namespace dtrain::models {

struct ClassifierOptions {
  int64_t classes = 0;            // 0: the model's default for its data set (1001, CIFAR 11: class 0 is background)
  int64_t image_size = 0;         // 0: the model's default
  BatchNormOptions batch_norm{};  // of all layers of the models that have some
};

// What one forward pass of one image takes of the layer that owns the parameter `weight`.
struct LayerWork {
  std::string weight;
  int64_t multiply_adds;
};

// A model with its registered parameters; `forward` maps [n, h, w, 3] normalised pixels to [n, classes] logits.
struct Classifier {
  std::string name;
  int64_t classes = 0, image_size = 0;
  int64_t multiply_adds = 0;        // of one forward pass of one image: convolutions and linear layers
  std::vector<LayerWork> layers{};  // the convolutions and the linear layers, in order of registration
  std::function<Var(Tape&, const Var&)> forward{};
};

// What is known of a model before it is built.
struct ClassifierInfo {
  std::string name;
  std::string dataset;                                            // "imagenet" or "cifar10"; trivial exists for both
  int64_t image_size, classes;                                    // defaults
  int64_t batch_size;                                             // default per device
  enum class Rate { fixed, resnet_imagenet, resnet_cifar } rate;  // which default schedule
};

// All of them, in the order they are listed for people.
const std::vector<ClassifierInfo>& classifiers();
// Throws Error naming the nearest known name, or the data set that has the name.
const ClassifierInfo& classifier_info(const std::string& name, const std::string& dataset);
// Registers the model's parameters in `store` and returns it. Call store.allocate() next. Throws Error where the image
// is too small for the model.
Classifier make_classifier(ParameterStore& store, const ClassifierInfo& info, const ClassifierOptions& options = {});

// The rates of tf_cnn_benchmarks where the user names none. ResNets on ImageNet: `base_at_256` * global_batch / 256,
// five epochs of warm-up, x0.1 at epochs 30, 60, 80 and 90. ResNets on CIFAR: 0.1, x0.1 at 82 and 123, 0.0002 from 300
// on. The others: 0.005.
Schedule default_schedule(const ClassifierInfo& info, int64_t global_batch, double steps_per_epoch,
                          double base_at_256 = 0.128);

}  // namespace dtrain::models
