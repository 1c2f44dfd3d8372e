#include "models/resnet_info.h"

namespace dtrain::models {
namespace {

// x0.1 at epochs 30, 60, 80 and 90.
Schedule official_schedule(double base, double steps_per_epoch) {
  return Schedule::piecewise(base, {30, 60, 80, 90}, {0.1 * base, 1e-2 * base, 1e-3 * base, 1e-4 * base},
                             steps_per_epoch);
}

// The same after five epochs of warm-up.
Schedule imagenet_schedule(double base, double steps_per_epoch) {
  Schedule schedule = official_schedule(base, steps_per_epoch);
  schedule.warmup_epochs = 5;
  return schedule;
}

Schedule cifar_schedule(double base, double steps_per_epoch) {
  return Schedule::piecewise(base, {82, 123, 300}, {0.01, 0.001, 0.0002}, steps_per_epoch);
}

ClassifierInfo imagenet_info(const std::string& name) {
  return {.name = name,
          .dataset = "imagenet",
          .image_size = 224,
          .classes = 1001,
          .batch_size = 32,
          .rate_grows_with_batch = true};
}

}  // namespace

const std::vector<ResNetDepth>& resnet_depths() {
  static const std::vector<ResNetDepth> depths{{18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},
                                               {50, {3, 4, 6, 3}, true},   {101, {3, 4, 23, 3}, true},
                                               {152, {3, 8, 36, 3}, true}, {200, {3, 24, 36, 3}, true}};
  return depths;
}

const std::vector<int>& cifar_resnet_blocks() {
  static const std::vector<int> blocks{3, 5, 7, 9, 18};
  return blocks;
}

ClassifierInfo resnet_info(const std::string& name, int layers) {
  ClassifierInfo info = imagenet_info(name);
  if (layers == 50) info.batch_size = 64;
  info.base_rate = 0.128;
  info.schedule = imagenet_schedule;
  return info;
}

ClassifierInfo official_resnet_info(const std::string& name, int layers) {
  ClassifierInfo info = imagenet_info(name);
  if (layers == 50) info.batch_size = 128;
  info.base_rate = 0.1;
  info.schedule = official_schedule;
  return info;
}

ClassifierInfo cifar_resnet_info(const std::string& name) {
  return {.name = name,
          .dataset = "cifar10",
          .image_size = 32,
          .classes = 11,
          .batch_size = 128,
          .base_rate = 0.1,
          .schedule = cifar_schedule};
}

}  // namespace dtrain::models
