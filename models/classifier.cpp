#include "models/classifier.h"

#include <algorithm>
#include <memory>

#include "libdtrain/core/nearest.h"
#include "models/resnet.h"
#include "models/small.h"
#include "models/vgg.h"

namespace dtrain::models {
namespace {

using Rate = ClassifierInfo::Rate;
using Forward = std::function<Var(Tape&, const Var&)>;
using Build = std::function<Forward(ParameterStore&, Trace&, const BatchNormOptions&, int64_t classes)>;

struct Entry {
  ClassifierInfo info;
  Build build;
};

template <class Model>
Forward forward_of(std::shared_ptr<const Model> model) {
  return [model = std::move(model)](Tape& tape, const Var& x) { return (*model)(tape, x); };
}

// Builds a Model without batch norm from (store, trace, arguments..., classes).
template <class Model, class... Arguments>
Build builder(Arguments... arguments) {
  return [arguments...](ParameterStore& store, Trace& trace, const BatchNormOptions&, int64_t classes) {
    return forward_of(std::make_shared<const Model>(store, trace, arguments..., classes));
  };
}

Build resnet_builder(const ResNetOptions& options) {
  return [options](ParameterStore& store, Trace& trace, const BatchNormOptions& batch_norm, int64_t classes) {
    ResNetOptions with = options;
    with.batch_norm = batch_norm;
    return forward_of(std::make_shared<const ResNet>(store, trace, with, classes));
  };
}

Entry imagenet(const std::string& name, int64_t size, int64_t batch, Rate rate, Build build) {
  return {{name, "imagenet", size, 1001, batch, rate}, std::move(build)};
}

Entry cifar(const std::string& name, Rate rate, int64_t batch, Build build) {
  return {{name, "cifar10", 32, 11, batch, rate}, std::move(build)};
}

void add_resnets(std::vector<Entry>& all) {
  struct Depth {
    int layers;
    std::vector<int> blocks;
    bool bottleneck;
    int64_t batch;
  };
  const Depth depths[] = {{18, {2, 2, 2, 2}, false, 32},
                          {34, {3, 4, 6, 3}, false, 32},
                          {50, {3, 4, 6, 3}, true, 64},
                          {101, {3, 4, 23, 3}, true, 32},
                          {152, {3, 8, 36, 3}, true, 32}};
  for (const Depth& depth : depths) {
    for (bool v1_5 : {false, true}) {
      const ResNetOptions options{.blocks = depth.blocks, .bottleneck = depth.bottleneck, .stride_in_3x3 = v1_5};
      all.push_back(imagenet("resnet" + std::to_string(depth.layers) + (v1_5 ? "_v1.5" : ""), 224, depth.batch,
                             Rate::resnet_imagenet, resnet_builder(options)));
    }
  }
  for (int n : {3, 5, 7, 9, 18}) {
    const ResNetOptions options{.blocks = {n, n, n}, .cifar = true};
    all.push_back(cifar("resnet" + std::to_string(6 * n + 2), Rate::resnet_cifar, 128, resnet_builder(options)));
  }
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = [] {
    std::vector<Entry> all;
    all.push_back(imagenet("trivial", 227, 32, Rate::fixed, builder<Trivial>()));
    all.push_back(cifar("trivial", Rate::fixed, 32, builder<Trivial>()));
    all.push_back(imagenet("lenet", 28, 32, Rate::fixed, builder<LeNet>()));
    all.push_back(imagenet("vgg11", 224, 64, Rate::fixed, builder<Vgg>(std::vector{1, 1, 2, 2, 2})));
    all.push_back(imagenet("vgg16", 224, 64, Rate::fixed, builder<Vgg>(std::vector{2, 2, 3, 3, 3})));
    all.push_back(imagenet("vgg19", 224, 64, Rate::fixed, builder<Vgg>(std::vector{2, 2, 4, 4, 4})));
    add_resnets(all);
    return all;
  }();
  return table;
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

const ClassifierInfo& classifier_info(const std::string& name, const std::string& dataset) {
  std::vector<std::string> names;
  std::string elsewhere;
  for (const ClassifierInfo& info : classifiers()) {
    if (info.dataset == dataset) names.push_back(info.name);
    if (info.name != name) continue;
    if (info.dataset == dataset) return info;
    elsewhere = info.dataset;
  }
  DT_CHECK(!names.empty(), "no model is made for data set '", dataset, "'; there are imagenet and cifar10");
  DT_CHECK(elsewhere.empty(), "model ", name, " is made for ", elsewhere, ", not for ", dataset);
  const auto meant = nearest(name, names);
  throw Error(concat("unknown model '", name, "' for ", dataset, meant ? "; did you mean " + *meant + "?" : ""));
}

Classifier make_classifier(ParameterStore& store, const ClassifierInfo& info, const ClassifierOptions& options) {
  const auto entry = std::find_if(entries().begin(), entries().end(), [&](const Entry& candidate) {
    return candidate.info.name == info.name && candidate.info.dataset == info.dataset;
  });
  DT_CHECK(entry != entries().end(), "unknown model '", info.name, "' for ", info.dataset);
  DT_CHECK(options.classes >= 0 && options.image_size >= 0, "model ", info.name, " with ", options.classes,
           " classes and images of ", options.image_size, " pixels");
  Classifier model{info.name, options.classes ? options.classes : info.classes,
                   options.image_size ? options.image_size : info.image_size};
  Trace trace(model.image_size);
  model.forward = entry->build(store, trace, options.batch_norm, model.classes);
  for (const LayerWork& layer : trace.layers) model.multiply_adds += layer.multiply_adds;
  model.layers = std::move(trace.layers);
  return model;
}

Schedule default_schedule(const ClassifierInfo& info, int64_t global_batch, double steps_per_epoch,
                          double base_at_256) {
  Schedule schedule;
  schedule.base = 0.005;
  schedule.steps_per_epoch = steps_per_epoch;
  if (info.rate == Rate::resnet_imagenet) {
    const double base = base_at_256 * static_cast<double>(global_batch) / 256;
    schedule = Schedule::piecewise(base, {30, 60, 80, 90}, {0.1 * base, 1e-2 * base, 1e-3 * base, 1e-4 * base},
                                   steps_per_epoch);
    schedule.warmup_epochs = 5;
  } else if (info.rate == Rate::resnet_cifar) {
    schedule = Schedule::piecewise(0.1, {82, 123, 300}, {0.01, 0.001, 0.0002}, steps_per_epoch);
  }
  return schedule;
}

}  // namespace dtrain::models
