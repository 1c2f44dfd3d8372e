// Catalogue of classifiers against published parameter counts and multiply-adds.
#include "dtrain/models/catalog.h"

#include <set>

#include "tests/testing.h"

namespace dtrain::models {
namespace {

struct Figures {
  const char *name, *dataset;
  int64_t classes, parameters, multiply_adds;
};

// torchvision 0.14: parameters and multiply-adds as documented; v1 with the stride moved in its bottlenecks, CIFAR as
// the same network built from its blocks. Other models: parameters of timm (ResNet v2, Inception-v4), Caffe (GoogLeNet)
// and, rounded, the papers (OverFeat, DenseNet). Their multiply-adds and unpublished figures are PyTorch's counts of
// the networks in tests/parity/classifier_models.py. NASNet: parameters of Keras; the paper rounds multiply-adds to 564
// M and 23.8 G.
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
    {"resnet50_v2", "imagenet", 1000, 25549480, 3857973248},
    {"resnet101_v2", "imagenet", 1000, 44541608, 7570194432},
    {"resnet152_v2", "imagenet", 1000, 60185256, 11282415616},
    {"official_resnet18", "imagenet", 1000, 11693736, 1826918400},
    {"official_resnet18_v2", "imagenet", 1000, 11691816, 1826918400},
    {"official_resnet34", "imagenet", 1000, 21801896, 3676606464},
    {"official_resnet34_v2", "imagenet", 1000, 21799976, 3676606464},
    {"official_resnet50", "imagenet", 1000, 25557032, 4089184256},
    {"official_resnet50_v2", "imagenet", 1000, 25549352, 4089184256},
    {"official_resnet101", "imagenet", 1000, 44549160, 7801405440},
    {"official_resnet101_v2", "imagenet", 1000, 44541480, 7801405440},
    {"official_resnet152", "imagenet", 1000, 60192808, 11513626624},
    {"official_resnet152_v2", "imagenet", 1000, 60185128, 11513626624},
    {"official_resnet200", "imagenet", 1000, 64673832, 15007481856},
    {"official_resnet200_v2", "imagenet", 1000, 64666152, 15007481856},
    {"resnet20_v2", "cifar10", 10, 269754, 40551040},
    {"resnet32_v2", "cifar10", 10, 464186, 68862592},
    {"resnet44_v2", "cifar10", 10, 658618, 97174144},
    {"resnet56_v2", "cifar10", 10, 853050, 125485696},
    {"resnet110_v2", "cifar10", 10, 1727994, 252887680},
    {"inception3", "imagenet", 1000, 23834568, 5713216096},
    {"inception4", "imagenet", 1000, 42679816, 12253974624},
    {"googlenet", "imagenet", 1000, 6998552, 1582671872},
    {"alexnet", "imagenet", 1000, 61838248, 838788800},
    {"alexnet", "cifar10", 10, 1756426, 32778112},
    {"overfeat", "imagenet", 1000, 145920872, 2801403904},
    {"densenet40_k12", "cifar10", 10, 1020634, 264812928},
    {"densenet100_k12", "cifar10", 10, 6981994, 1769516448},
    {"densenet100_k24", "cifar10", 10, 27253738, 6889347744},
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

TEST(Classifier, AuxiliaryHeadOfInception3) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const ClassifierInfo& info = classifier_info("inception3", "imagenet");
  make_classifier(store, info, {.classes = 1000, .auxiliary_head = true});
  EXPECT_EQ(store.parameter_count(), 27161264);
  EXPECT_NE(store.find("AuxLogits.conv1.bn.bias"), nullptr);
  ParameterStore other(*context);
  expect_error([&] { make_classifier(other, classifier_info("resnet50", "imagenet"), {.auxiliary_head = true}); },
               Fault::config, "has no auxiliary head");
}

// Number of trainable parameters of Keras' InceptionV3, whose batch norms have no gamma either.
TEST(Classifier, InceptionBatchNormsHaveNoGamma) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  make_classifier(store, classifier_info("inception3", "imagenet"), {.classes = 1000});
  int64_t trained = 0;
  for (const Parameter& parameter : store.parameters())
    if (!parameter.options().frozen) trained += parameter.shape.count();
  EXPECT_EQ(trained, 23817352);
  EXPECT_TRUE(store.find("Mixed_7c.branch_pool.bn.weight")->options().frozen);
}

TEST(Classifier, SmallModelsMatchHandCounts) {
  const auto context = make_cpu_context();
  ParameterStore lenet(*context);
  const Classifier model = make_classifier(lenet, classifier_info("lenet", "imagenet"));
  EXPECT_EQ(lenet.parameter_count(), (25 * 3 + 1) * 32 + (25 * 32 + 1) * 64 + (49 * 64 + 1) * 512 + 513 * 1001);
  EXPECT_EQ(model.multiply_adds, 784 * 75 * 32 + 196 * 800 * 64 + 3136 * 512 + 512 * 1001);
  EXPECT_EQ(classifier_info("lenet", "fashion_mnist").classes, 10);
  ParameterStore small(*context);
  const Classifier cnn = make_classifier(small, classifier_info("small_cnn", "mnist"));
  EXPECT_EQ(small.parameter_count(), (9 * 3 + 1) * 32 + (9 * 32 + 1) * 64 + (196 * 64 + 1) * 128 + 129 * 10);
  EXPECT_EQ(cnn.multiply_adds, 784 * 27 * 32 + 784 * 288 * 64 + 12544 * 128 + 128 * 10);
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
  ParameterStore inception(*context);
  make_classifier(inception, classifier_info("inception3", "imagenet"));
  for (const char* name : {"Conv2d_1a_3x3.conv.weight", "Mixed_5b.branch3x3dbl_3.bn.bias",
                           "Mixed_6e.branch7x7dbl_5.conv.weight", "Mixed_7b.branch3x3dbl_3b.conv.weight", "fc.bias"})
    EXPECT_NE(inception.find(name), nullptr) << name;
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
  const struct {
    const char *name, *dataset;
    int64_t image_size, batch_size;
  } kDefaults[] = {{"alexnet", "imagenet", 227, 512},           {"alexnet", "cifar10", 32, 128},
                   {"overfeat", "imagenet", 231, 32},           {"googlenet", "imagenet", 224, 32},
                   {"inception3", "imagenet", 299, 32},         {"inception4", "imagenet", 299, 32},
                   {"resnet50_v2", "imagenet", 224, 64},        {"resnet101_v2", "imagenet", 224, 32},
                   {"official_resnet50", "imagenet", 224, 128}, {"official_resnet200_v2", "imagenet", 224, 32},
                   {"resnet110_v2", "cifar10", 32, 128},        {"densenet100_k24", "cifar10", 32, 64}};
  for (const auto& expected : kDefaults) {
    const ClassifierInfo& info = classifier_info(expected.name, expected.dataset);
    EXPECT_EQ(info.dataset, expected.dataset) << expected.name;
    EXPECT_EQ(info.image_size, expected.image_size) << expected.name;
    EXPECT_EQ(info.batch_size, expected.batch_size) << expected.name;
    EXPECT_EQ(info.classes, info.dataset == "imagenet" ? 1001 : 11) << expected.name;
  }
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
  EXPECT_EQ(default_schedule(classifier_info("inception3", "imagenet"), 64, 100).describe(), "0.005");
  // 0.0125 for 32 images, without warm-up.
  EXPECT_EQ(default_schedule(classifier_info("official_resnet50_v2", "imagenet"), 128, 100).describe(),
            "0.05, x0.1 at epochs 30, 60, 80, 90");
  EXPECT_EQ(default_schedule(classifier_info("densenet40_k12", "cifar10"), 64, 100).describe(),
            "0.1, x0.1 at epochs 150, 225, 300");
  const Schedule alexnet = default_schedule(classifier_info("alexnet", "cifar10"), 128, 10);
  EXPECT_DOUBLE_EQ(alexnet.at(999), 0.1);
  EXPECT_DOUBLE_EQ(alexnet.at(2000), 0.001);
}

TEST(Classifier, UnknownNameSuggestsNearest) {
  EXPECT_EQ(find_classifier("resnet5O", "imagenet"), nullptr);
  expect_error([] { classifier_info("resnet5O", "imagenet"); }, Fault::config,
               "unknown model 'resnet5O' for imagenet; did you mean resnet50?");
}

TEST(Classifier, NonImageModelsNameTheirPurpose) {
  EXPECT_STREQ(other_purpose("deepspeech2"), "it recognises speech");
  EXPECT_NE(other_purpose("ncf"), nullptr);
  EXPECT_EQ(other_purpose("resnet50"), nullptr);
}

TEST(Classifier, AnyModelSupportsAnyDataSet) {
  EXPECT_EQ(classifier_info("trivial", "imagenet").dataset, "imagenet");
  EXPECT_EQ(classifier_info("trivial", "cifar10").dataset, "cifar10");
  EXPECT_EQ(classifier_info("resnet20", "imagenet").dataset, "cifar10");
  EXPECT_EQ(classifier_info("resnet50", "mnist").dataset, "imagenet");
}

TEST(Classifier, RejectsTooSmallImages) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  EXPECT_THROW(make_classifier(store, classifier_info("vgg16", "imagenet"), {.image_size = 16}), Error);
}

TEST(Catalog, GlobalPoolingAcceptsAnyImageSize) {
  const auto context = make_cpu_context();
  const auto takes = [&](const char* name, int64_t size, int64_t other) {
    return takes_images_of(*context, classifier_info(name, "imagenet"), {.image_size = size}, other);
  };
  EXPECT_TRUE(takes("resnet50", 224, 128));
  EXPECT_TRUE(takes("vgg16", 224, 224));
  EXPECT_FALSE(takes("vgg16", 224, 160));
}

}  // namespace
}  // namespace dtrain::models
