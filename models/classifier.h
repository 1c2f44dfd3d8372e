// The image classifiers, by tf_cnn_benchmarks' names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/tape.h"

namespace dtrain::models {

struct ClassifierOptions {
  int64_t classes = 0;     // 0: the model's default for its data set (1001, CIFAR 11: class 0 is background)
  int64_t image_size = 0;  // 0: the model's default
};

// A model under a name, with its registered parameters; `forward` maps [n, h, w, 3] normalised pixels to [n, classes]
// logits.
struct Classifier {
  std::string name;
  int64_t classes, image_size;
  std::function<Var(Tape&, const Var&)> forward;
};

// What is known of a model before it is built.
struct ClassifierInfo {
  std::string name;
  std::string dataset;          // "imagenet" or "cifar10": a name may exist for both (trivial, resnet-likes do not)
  int64_t image_size, classes;  // defaults
  int64_t batch_size;           // default per device
  enum class Rate { fixed, resnet_imagenet, resnet_cifar } rate;  // which default schedule
  double learning_rate;                                           // of `fixed`
};

// All names, in the order they are listed for people.
const std::vector<ClassifierInfo>& classifiers();
// Throws Error naming the nearest known name.
const ClassifierInfo& classifier_info(const std::string& name, const std::string& dataset);
// Registers the model's parameters in `store` (torchvision's names) and returns it. Call store.allocate() next.
Classifier make_classifier(ParameterStore& store, const ClassifierInfo& info, const ClassifierOptions& options = {});

// Multiply-adds of one forward pass of one image, from the shapes of the convolutions and the linear layers.
int64_t multiply_adds(const ClassifierInfo& info, const ClassifierOptions& options = {});

}  // namespace dtrain::models
