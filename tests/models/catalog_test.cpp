// The classifiers against published figures, and by name.
#include "models/catalog.h"

#include <set>

#include "tests/testing.h"

namespace dtrain::models {
namespace {

struct Figures {
  const char *name, *dataset;
  int64_t classes, parameters, multiply_adds;
};

// Parameters and multiply-adds as torchvision 0.14's models have them (their documentation rounds the same numbers);
// v1 by moving the stride of its bottlenecks, CIFAR by the same network written with its blocks. NASNet's parameters as
// those of Keras, and multiply-adds that the paper rounds (564 M, 23.8 G).
const Figures kPublished[] = {
    {"resnet18", "imagenet", 1000, 11689512, 1814073344},
    {"resnet34", "imagenet", 1000, 21797672, 3663761408},
    {"resnet50", "imagenet", 1000, 25557032, 3857973248},
    {"resnet50_v1.5", "imagenet", 1000, 25557032, 4089184256},
    {"resnet101", "imagenet", 1000, 44549160, 7570194432},
    {"resnet101_v1.5", "imagenet", 1000, 44549160, 7801405440},
    {"resnet152", "imagenet", 1000, 60192808, 11282415616},
    {"resnet152_v1.5", "imagenet", 1000, 60192808, 11513626624},
    {"vgg11", "imagenet", 1000, 132863336, 7609090048},
    {"vgg16", "imagenet", 1000, 138357544, 15470264320},
    {"vgg19", "imagenet", 1000, 143667240, 19632062464},
    {"resnet20", "cifar10", 10, 272474, 40813184},
    {"resnet32", "cifar10", 10, 466906, 69124736},
    {"resnet44", "cifar10", 10, 661338, 97436288},
    {"resnet56", "cifar10", 10, 855770, 125747840},
    {"resnet110", "cifar10", 10, 1730714, 253149824},
    {"mobilenet", "imagenet", 1000, 3504872, 300774272},
    {"nasnet", "imagenet", 1000, 5289978, 563638816},
    {"nasnetlarge", "imagenet", 1000, 88753150, 23783414658},
};

TEST(Classifier, PublishedParametersAndMultiplyAdds) {
  const auto context = make_cpu_context();
  for (const Figures& figures : kPublished) {
    ParameterStore store(*context);
    const Classifier model =
        make_classifier(store, classifier_info(figures.name, figures.dataset), {.classes = figures.classes});
    EXPECT_EQ(store.parameter_count(), figures.parameters) << figures.name;
    EXPECT_EQ(model.multiply_adds, figures.multiply_adds) << figures.name;
    int64_t work = 0;
    for (const LayerWork& layer : model.layers) {
      EXPECT_NE(store.find(layer.weight), nullptr) << figures.name << " " << layer.weight;
      work += layer.multiply_adds;
    }
    EXPECT_EQ(work, figures.multiply_adds) << figures.name;
  }
}

TEST(Classifier, SmallModelsByHand) {
  const auto context = make_cpu_context();
  ParameterStore lenet(*context);
  const Classifier model = make_classifier(lenet, classifier_info("lenet", "imagenet"));
  EXPECT_EQ(lenet.parameter_count(), (25 * 3 + 1) * 32 + (25 * 32 + 1) * 64 + (49 * 64 + 1) * 512 + 513 * 1001);
  EXPECT_EQ(model.multiply_adds, 784 * 75 * 32 + 196 * 800 * 64 + 3136 * 512 + 512 * 1001);
  ParameterStore trivial(*context);
  make_classifier(trivial, classifier_info("trivial", "cifar10"));
  EXPECT_EQ(trivial.parameter_count(), 3072 + 1 + 4096 + 4096 + 4097 * 11);
}

TEST(Classifier, ParametersAreNamedAsInTorchvision) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  make_classifier(store, classifier_info("resnet50", "imagenet"));
  EXPECT_EQ(store.parameters().size(), 161u);
  EXPECT_EQ(store.buffers().size(), 106u);
  for (const char* name : {"conv1.weight", "bn1.bias", "layer1.0.downsample.0.weight", "layer1.0.downsample.1.weight",
                           "layer3.5.conv3.weight", "layer4.2.bn2.weight", "fc.weight", "fc.bias"})
    EXPECT_NE(store.find(name), nullptr) << name;
  EXPECT_NE(store.find_buffer("layer2.0.downsample.1.running_var"), nullptr);
  ParameterStore vgg(*context);
  make_classifier(vgg, classifier_info("vgg16", "imagenet"));
  for (const char* name : {"features.0.weight", "features.28.bias", "classifier.0.weight", "classifier.6.bias"})
    EXPECT_NE(vgg.find(name), nullptr) << name;
}

TEST(Classifier, DefaultsOfTfCnnBenchmarks) {
  const ClassifierInfo& resnet = classifier_info("resnet50", "imagenet");
  EXPECT_EQ(resnet.batch_size, 64);
  EXPECT_EQ(resnet.classes, 1001);
  EXPECT_EQ(resnet.image_size, 224);
  EXPECT_EQ(classifier_info("resnet152", "imagenet").batch_size, 32);
  EXPECT_EQ(classifier_info("trivial", "imagenet").image_size, 227);
  EXPECT_EQ(classifier_info("resnet56", "cifar10").batch_size, 128);
  EXPECT_EQ(classifier_info("mobilenet", "imagenet").batch_size, 32);
  EXPECT_EQ(classifier_info("nasnetlarge", "imagenet").image_size, 331);
  EXPECT_EQ(classifier_info("nasnetlarge", "imagenet").batch_size, 16);
  EXPECT_EQ(classifier_info("nasnet", "cifar10").base_rate, 0.025);
  EXPECT_EQ(classifier_info("resnet56", "cifar10").classes, 11);
  std::set<std::pair<std::string, std::string>> names;
  for (const ClassifierInfo& info : classifiers())
    EXPECT_TRUE(names.emplace(info.name, info.dataset).second) << info.name << " is listed twice";
}

TEST(Classifier, DefaultSchedules) {
  EXPECT_EQ(default_schedule(classifier_info("resnet50", "imagenet"), 512, 2502.3).describe(),
            "0.256, linear warm-up over 5 epochs, x0.1 at epochs 30, 60, 80, 90");
  EXPECT_EQ(default_schedule(classifier_info("resnet50", "imagenet"), 128, 2502.3, 0.2).base, 0.1);
  EXPECT_EQ(default_schedule(classifier_info("resnet20", "cifar10"), 128, 390.6).describe(),
            "0.1, 0.01 from epoch 82, 0.001 from epoch 123, 0.0002 from epoch 300");
  EXPECT_EQ(default_schedule(classifier_info("vgg16", "imagenet"), 64, 100).describe(), "0.005");
}

TEST(Classifier, UnknownNamesAreToldTheNearest) {
  EXPECT_EQ(find_classifier("resnet5O", "imagenet"), nullptr);
  expect_error([] { classifier_info("resnet5O", "imagenet"); }, Fault::config,
               "unknown model 'resnet5O' for imagenet; did you mean resnet50?");
}

TEST(Classifier, AnyModelTakesAnyDataSet) {
  EXPECT_EQ(classifier_info("trivial", "imagenet").dataset, "imagenet");
  EXPECT_EQ(classifier_info("trivial", "cifar10").dataset, "cifar10");
  EXPECT_EQ(classifier_info("resnet20", "imagenet").dataset, "cifar10");
  EXPECT_EQ(classifier_info("resnet50", "mnist").dataset, "imagenet");
}

TEST(Classifier, RefusesAnImageTooSmall) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  EXPECT_THROW(make_classifier(store, classifier_info("vgg16", "imagenet"), {.image_size = 16}), Error);
}

}  // namespace
}  // namespace dtrain::models
