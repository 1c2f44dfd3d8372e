#include "models/references.h"

#include <algorithm>
#include <iterator>

namespace dtrain::models {
namespace {

// torchvision: documentation, weights IMAGENET1K_V1. TF-Slim: README of tensorflow/models/research/slim. He et al.
// 2015: table 6, best of five runs for 110 layers. Huang et al. 2016: table 2, C10+.
constexpr std::string_view kTorchvision = "torchvision", kSlim = "TF-Slim", kHe = "He et al. 2015",
                           kHuang = "Huang et al. 2016", kBoth = "torchvision, timm",
                           kTimmPads = "timm (padding of the stem's pool)";

constexpr ModelReference kReferences[] = {
    {"resnet18", "imagenet", 69.76, kTorchvision, kBoth},
    {"resnet34", "imagenet", 73.31, kTorchvision, kBoth},
    {"resnet18_v1.5", "imagenet", 69.76, kTorchvision, kBoth},
    {"resnet34_v1.5", "imagenet", 73.31, kTorchvision, kBoth},
    {"resnet50_v1.5", "imagenet", 76.13, kTorchvision, kBoth},
    {"resnet101_v1.5", "imagenet", 77.37, kTorchvision, kBoth},
    {"resnet152_v1.5", "imagenet", 78.31, kTorchvision, kBoth},
    {"official_resnet50_v2", "imagenet", 0, {}, kTimmPads},
    {"official_resnet101_v2", "imagenet", 0, {}, kTimmPads},
    {"official_resnet152_v2", "imagenet", 0, {}, kTimmPads},
    {"resnet20", "cifar10", 91.25, kHe, {}},
    {"resnet32", "cifar10", 92.49, kHe, {}},
    {"resnet44", "cifar10", 92.83, kHe, {}},
    {"resnet56", "cifar10", 93.03, kHe, {}},
    {"resnet110", "cifar10", 93.57, kHe, {}},
    {"inception3", "imagenet", 78.0, kSlim, "torchvision, timm (average pools count the padding; the last pool)"},
    {"inception4", "imagenet", 80.2, kSlim, {}},
    {"densenet40_k12", "cifar10", 94.76, kHuang, {}},
    {"densenet100_k12", "cifar10", 95.90, kHuang, {}},
    {"densenet100_k24", "cifar10", 96.26, kHuang, {}},
    {"vgg11", "imagenet", 69.02, kTorchvision, kBoth},
    {"vgg16", "imagenet", 71.59, kTorchvision, kBoth},
    {"vgg19", "imagenet", 72.38, kTorchvision, kBoth},
    {"mobilenet", "imagenet", 71.9, kSlim, "torchvision, timm (padding of strides; epsilon)"},
    {"nasnet", "imagenet", 74.0, kSlim, {}},
    {"nasnetlarge", "imagenet", 82.7, kSlim, "timm (average pools that stride count the padding)"},
};

}  // namespace

const ModelReference* reference_of(const ClassifierInfo& info) {
  const auto* const found = std::ranges::find_if(
      kReferences, [&](const ModelReference& one) { return one.name == info.name && one.dataset == info.dataset; });
  return found == std::end(kReferences) ? nullptr : found;
}

}  // namespace dtrain::models
