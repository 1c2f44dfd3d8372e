// Loading of classifier weights with other libraries' names and layouts. tests/parity loads real models.
#include "dtrain/models/classifier_weights.h"

#include "dtrain/models/catalog.h"
#include "models/timm_names.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

std::string timm_name_of(const char* model, const ParameterStore& store, const std::string& ours) {
  return foreign_name(*timm_names(classifier_info(model, "imagenet")), store, ours).text;
}

TEST(ClassifierWeights, LoadsTimmNames) {
  const auto context = make_cpu_context();
  const ParameterStore none(*context);
  for (const auto& [model, ours, theirs] : std::vector<std::array<const char*, 3>>{
           {"vgg16", "features.28.bias", "features.28.bias"},
           {"vgg16", "classifier.3.weight", "pre_logits.fc2.weight"},
           {"official_resnet50_v2", "conv1.weight", "stem.conv.weight"},
           {"official_resnet50_v2", "layer3.5.bn2.running_var", "stages.2.blocks.5.norm2.running_var"},
           {"official_resnet50_v2", "layer4.0.downsample.0.weight", "stages.3.blocks.0.downsample.conv.weight"},
           {"official_resnet50_v2", "bn.bias", "norm.bias"},
           {"mobilenet", "features.0.1.weight", "bn1.weight"},
           {"mobilenet", "features.1.conv.1.weight", "blocks.0.0.conv_pw.weight"},
           {"mobilenet", "features.10.conv.1.1.running_mean", "blocks.3.3.bn2.running_mean"},
           {"mobilenet", "features.17.conv.3.bias", "blocks.6.0.bn3.bias"},
           {"mobilenet", "features.18.1.bias", "bn2.bias"},
           {"nasnetlarge", "cell_stem_1.path2_conv.weight", "cell_stem_1.path_2.conv.weight"},
           {"nasnetlarge", "cell_3.prev_bn.bias", "cell_3.conv_prev_1x1.bn.bias"},
           {"nasnetlarge", "cell_3.comb_iter_0.left.separable_5x5_2.pointwise.weight",
            "cell_3.comb_iter_0_left.separable_2.pointwise_conv2d.weight"},
           {"nasnetlarge", "cell_3.comb_iter_1.right.bn_sep_3x3_1.weight", "cell_3.comb_iter_1_right.bn_sep_1.weight"},
       })
    EXPECT_EQ(timm_name_of(model, none, ours), theirs);
  for (const char* const model : {"resnet50_v1.5", "official_resnet50", "googlenet", "nasnet"})
    EXPECT_EQ(timm_names(classifier_info(model, "imagenet")), nullptr) << model;
  EXPECT_EQ(timm_names(classifier_info("nasnet", "cifar10")), nullptr);
}

// A file with other names, a convolution in place of the last linear layer, and an auxiliary head.
TEST(ClassifierWeights, ConvolutionOverImageLoadsAsLinear) {
  const auto context = make_cpu_context();
  const ClassifierInfo& info = classifier_info("official_resnet18_v2", "imagenet");
  const ClassifierOptions options{.classes = 3, .image_size = 32};
  ParameterStore ours(*context), theirs(*context), loaded(*context);
  make_classifier(ours, info, options);
  ours.allocate(1);
  for (const Parameter& one : ours.parameters()) {
    const std::string name = timm_name_of("official_resnet18_v2", ours, one.name);
    const bool last = one.name == "fc.weight";
    const Shape shape = last ? Shape{3, 1, 1, 512} : one.shape;
    theirs.add(name, shape, Init::constant(0), {.layout = shape.rank() == 4 ? Layout::krsc : Layout::plain});
  }
  for (const Buffer& one : ours.buffers())
    theirs.add_buffer(timm_name_of("official_resnet18_v2", ours, one.name), one.shape, 2);
  theirs.add("aux.weight", {2, 2}, Init::constant(0));
  theirs.allocate(5);
  for (size_t i = 0; i < ours.parameters().size(); ++i) {
    const Tensor& from = ours.parameters()[i].value;
    context->upload(from.data<float>(), theirs.parameters()[i].value);
  }
  const TempDirectory folder;
  const std::string path = (folder.path() / "w.safetensors").string();
  save_weights(theirs, path);
  EXPECT_EQ(classes_of_weights(ours, info, path), 3);
  make_classifier(loaded, info, options);
  loaded.allocate(2);
  const LoadedWeights result = load_classifier(loaded, info, path);
  EXPECT_EQ(result.names.id, "timm");
  EXPECT_EQ(result.report.unexpected, std::vector<std::string>{"aux.weight"});
  EXPECT_TRUE(result.report.missing.empty() && result.report.mismatched.empty()) << result.report.summary();
  for (size_t i = 0; i < ours.parameters().size(); ++i)
    EXPECT_EQ(torch_values(loaded, loaded.parameters()[i]), torch_values(ours, ours.parameters()[i]));
  EXPECT_EQ(loaded.buffers().front().value.data<float>()[0], 2);
  expect_error([&] { classes_of_weights(ours, classifier_info("mobilenet", "imagenet"), path, Fault::checkpoint); },
               Fault::checkpoint, "no weight fc.weight of the last layer of mobilenet");
  // Else a small file with a tensor of stride 0 would ask for a model of any number of classes.
  const std::string other = (folder.path() / "other.safetensors").string();
  ParameterStore narrow(*context);
  narrow.add("fc.weight", {3, 1}, Init::constant(0));
  narrow.allocate(1);
  save_weights(narrow, other);
  expect_error([&] { classes_of_weights(ours, info, other, Fault::checkpoint); }, Fault::checkpoint,
               "does not fit official_resnet18_v2: fc.weight is [3, 1], expected rows of 512 elements");
}

// The head of timm's ResNet v2 and the first two linear layers of its VGG are convolutions.
TEST(ClassifierWeights, RenamesToTimmsShapes) {
  struct Case {
    const char *model, *ours, *theirs;
    Shape shape;
  };
  const auto context = make_cpu_context();
  const TempDirectory folder;
  const std::string path = (folder.path() / "w.safetensors").string();
  for (const Case& one : {Case{"vgg11", "classifier.0.weight", "pre_logits.fc1.weight", {4096, 512, 7, 7}},
                          Case{"vgg11", "classifier.3.weight", "pre_logits.fc2.weight", {4096, 4096, 1, 1}},
                          Case{"vgg11", "classifier.6.weight", "head.fc.weight", {1000, 4096}},
                          Case{"official_resnet50_v2", "fc.weight", "head.fc.weight", {1000, 2048, 1, 1}},
                          Case{"official_resnet50_v2", "fc.bias", "head.fc.bias", {1000}},
                          Case{"mobilenet", "classifier.1.weight", "classifier.weight", {1000, 1280}},
                          Case{"resnet50_v1.5", "conv1.weight", "conv1.weight", {64, 3, 7, 7}}}) {
    SCOPED_TRACE(one.ours);
    const ClassifierInfo& info = classifier_info(one.model, "imagenet");
    ParameterStore store(*context);
    make_classifier(store, info, {.classes = 1000, .image_size = 0});
    const std::vector<TensorSpec> specs = {{concat("module.", one.ours), DType::u8, {1}}};
    AtomicFile file(path);
    file.write(safetensors_header(specs) + "x");
    file.commit();
    const ArrayFile arrays(path);
    const Renaming renaming = rename_classifier(store, info, arrays, "timm");
    EXPECT_EQ(renaming.from.id, "torchvision");
    ASSERT_EQ(renaming.arrays.size(), 1u);
    EXPECT_EQ(renaming.arrays[0].from, &arrays.entries()[0]);
    EXPECT_EQ(renaming.arrays[0].to, one.theirs);
    EXPECT_EQ(renaming.arrays[0].shape, one.shape);
  }
}

}  // namespace
}  // namespace dtrain::models
