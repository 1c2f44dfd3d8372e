// Parts of models by name: lists, freezing, and the head.
#include "dtrain/models/parts.h"

#include <algorithm>

#include "dtrain/models/catalog.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/models/detection/presets.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

using Names = std::vector<std::string>;

class Parts : public testing::Test {
 protected:
  ParameterStore& classifier(const std::string& name, const std::string& dataset, int size = 0) {
    store_ = std::make_unique<ParameterStore>(*context_);
    make_classifier(*store_, classifier_info(name, dataset), {.classes = 3, .image_size = size});
    return *store_;
  }
  ParameterStore& detector() {
    DetectorOptions options = detector_preset("torchvision").options;
    options.backbone.bottleneck = false;
    options.backbone.blocks = {1, 1, 1, 1};
    options.channels = options.mask.channels = 16;
    options.box.features = 32;
    store_ = std::make_unique<ParameterStore>(*context_);
    const Detector made(*store_, options);
    return *store_;
  }
  Names frozen() const {
    Names names;
    for (const Parameter& one : store_->parameters())
      if (one.options().frozen) names.push_back(one.name);
    for (const Buffer& one : store_->buffers())
      if (one.constant()) names.push_back(one.name);
    return names;
  }
  Names in_head() const {
    const NameFilter head = head_of(*store_);
    Names names;
    for (const Parameter& one : store_->parameters())
      if (head.accepts(one.name)) names.push_back(one.name);
    return names;
  }

  std::unique_ptr<Context> context_ = make_cpu_context();
  std::unique_ptr<ParameterStore> store_{};
};

TEST_F(Parts, AreNamedAfterTheModel) {
  EXPECT_EQ(part_names(classifier("resnet18", "imagenet")),
            (Names{"stem", "conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "fc"}));
  EXPECT_EQ(part_names(classifier("vgg11", "imagenet", 32)), (Names{"features", "classifier"}));
  EXPECT_EQ(part_names(detector()),
            (Names{"stem", "conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "backbone", "rpn", "roi_heads"}));
}

TEST_F(Parts, FreezeParametersAndStatistics) {
  ParameterStore& store = classifier("resnet18", "imagenet");
  EXPECT_TRUE(freeze_part(store, "stem"));
  EXPECT_EQ(frozen(), (Names{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"}));
  EXPECT_TRUE(freeze_part(store, "layer1.0"));
  EXPECT_EQ(frozen().size(), 5u + 10u);
  EXPECT_FALSE(freeze_part(store, "layer"));  // no prefix of a component
  EXPECT_FALSE(freeze_part(store, ""));
  EXPECT_FALSE(freeze_part(store, "layer5"));
  EXPECT_EQ(frozen().size(), 15u);
  EXPECT_FALSE(freeze_part(classifier("vgg11", "imagenet", 32), "stem"));
  EXPECT_TRUE(freeze_part(*store_, "features.0"));
  EXPECT_EQ(frozen(), (Names{"features.0.weight", "features.0.bias"}));
}

TEST_F(Parts, OfADetectorAreThoseOfFreezeAt) {
  DetectorOptions options;
  options.freeze_at = 2;
  options.freeze_norms = false;
  freeze(detector(), options);
  const Names expected = frozen();
  EXPECT_EQ(std::ranges::count_if(expected, [](const std::string& name) { return name.ends_with(".weight"); }), 6);
  detector();
  EXPECT_TRUE(freeze_part(*store_, "stem") && freeze_part(*store_, "layer1"));
  EXPECT_EQ(frozen(), expected);
  EXPECT_TRUE(freeze_part(*store_, "rpn.head.conv"));
  EXPECT_EQ(frozen().size(), expected.size() + 2);
}

TEST_F(Parts, HeadDependsOnTheClasses) {
  classifier("resnet18", "imagenet");
  EXPECT_EQ(in_head(), (Names{"fc.weight", "fc.bias"}));
  classifier("vgg11", "imagenet", 32);
  EXPECT_EQ(in_head(), (Names{"classifier.6.weight", "classifier.6.bias"}));
  detector();
  const Names head = in_head();
  EXPECT_EQ(head.size(), 8u);
  EXPECT_NE(std::ranges::find(head, "roi_heads.box_predictor.cls_score.weight"), head.end());
  EXPECT_NE(std::ranges::find(head, "roi_heads.mask_predictor.mask_fcn_logits.bias"), head.end());
  store_ = std::make_unique<ParameterStore>(*context_);  // as SSD300 names its heads
  for (const char* name : {"additional_blocks.0.0.weight", "loc.0.weight", "conf.5.bias"})
    store_->add(name, {3}, Init::constant(0));
  EXPECT_EQ(in_head(), (Names{"loc.0.weight", "conf.5.bias"}));
  ParameterStore none(*context_);
  none.add("a.weight", {3}, Init::constant(0));
  expect_error([&] { head_of(none); }, Fault::config, "no linear layer");
}

}  // namespace
}  // namespace dtrain::models
