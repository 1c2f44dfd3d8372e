// TensorPack weight files: names in both directions, and the element order of each kind of array.
#include "models/detection/tensorpack_names.h"

#include <cmath>
#include <map>

#include "dtrain/core/rng.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/models/detection/weight_files.h"
#include "tests/files.h"
#include "tests/npz_writer.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

DetectorOptions small_pyramid(bool convolutions) {
  DetectorOptions options;
  options.classes = 4;
  options.channels = 32;
  options.backbone.blocks = {1, 1, 1, 2};
  options.box.features = 5;
  options.box.resolution = 3;
  options.mask.channels = 32;
  if (convolutions) {
    options.box.convolutions = 4;
    options.box.linear_layers = 1;
    options.box.channels = 32;
    options.box.group_norm = options.mask.group_norm = true;
  }
  return options;
}

DetectorOptions small_detector() { return small_pyramid(false); }

DetectorOptions small_cascade(bool convolutions) {
  DetectorOptions options = small_pyramid(convolutions);
  options.cascade = true;
  options.pyramid_norm = convolutions;
  options.backbone.norm = convolutions ? ConvNorm::group : ConvNorm::batch;
  return options;
}

DetectorOptions small_c4() {
  DetectorOptions options = small_detector();
  options.pyramid = false;
  options.backbone.batch_norm.frozen = true;
  options.c4.rpn_channels = 32;
  return options;
}

std::string tensorpack_name(const std::string& ours) { return foreign_name(tensorpack_names(), ours).text; }
std::string tensorpack_name(const ParameterStore& store, const std::string& ours) {
  return foreign_name(tensorpack_names(), store, ours).text;
}

// TensorPack's array shapes by name, independent of the loader's implementation.
std::vector<int64_t> tensorpack_shape(const std::string& theirs, const Shape& ours) {
  if (theirs == "maskrcnn/conv/W") return {1, 1, 32, 3};
  if (theirs == "maskrcnn/conv/b") return {3};
  if (ours.rank() == 4) return {ours[1], ours[2], ours[3], ours[0]};
  if (ours.rank() == 2) return {ours[1], ours[0]};
  return {ours[0]};
}

struct MadeUp {
  NpzWriter writer{};
  std::map<std::string, std::vector<double>> values{};  // by TensorPack's name

  void add(const std::string& name, const std::vector<int64_t>& shape) {
    RandomStream random(11, values.size());
    size_t count = 1;
    std::string text = "(";
    for (const int64_t dim : shape) {
      count *= static_cast<size_t>(dim);
      text += std::to_string(dim) + ",";
    }
    std::vector<float> numbers;
    for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(random.below(1 << 20)));
    values[name].assign(numbers.begin(), numbers.end());
    writer.add(name, text + ")", numbers, values.size() % 2 == 0);
  }
  std::string write(const TempDirectory& folder) const {
    const std::string path = (folder.path() / "weights.npz").string();
    write_file(path, writer.archive());
    return path;
  }
};

MadeUp file_for(const ParameterStore& store) {
  MadeUp file;
  for (const Parameter& parameter : store.parameters()) {
    const std::string name = tensorpack_name(store, parameter.name);
    file.add(name, tensorpack_shape(name, parameter.shape));
  }
  for (const Buffer& buffer : store.buffers())
    file.add(tensorpack_name(store, buffer.name), tensorpack_shape("", buffer.shape));
  return file;
}

std::vector<double> values_of(ParameterStore& store, const std::string& name) {
  Buffer* const buffer = store.find_buffer(name);
  return to_host(store.context(), buffer ? buffer->value : store.find(name)->value).values;
}

TEST(TensorpackNames, MatchItsFiles) {
  const std::pair<const char*, const char*> pairs[] = {
      {"backbone.body.conv1.weight", "conv0/W"},
      {"backbone.body.bn1.running_var", "conv0/bn/variance/EMA"},
      {"backbone.body.layer1.0.conv2.weight", "group0/block0/conv2/W"},
      {"backbone.body.layer3.22.bn3.weight", "group2/block22/conv3/bn/gamma"},
      {"backbone.body.layer4.0.downsample.0.weight", "group3/block0/convshortcut/W"},
      {"backbone.body.layer4.0.downsample.1.running_mean", "group3/block0/convshortcut/bn/mean/EMA"},
      {"backbone.fpn.inner_blocks.0.0.bias", "fpn/lateral_1x1_c2/b"},
      {"backbone.fpn.layer_blocks.3.0.weight", "fpn/posthoc_3x3_p5/W"},
      {"rpn.head.conv.0.0.weight", "rpn/conv0/W"},
      {"rpn.head.bbox_pred.bias", "rpn/box/b"},
      {"roi_heads.box_head.fc6.weight", "fastrcnn/fc6/W"},
      {"roi_heads.box_head.2.0.weight", "fastrcnn/conv2/W"},
      {"roi_heads.box_head.2.1.bias", "fastrcnn/gn2/beta"},
      {"roi_heads.box_head.5.weight", "fastrcnn/fc/W"},
      {"roi_heads.box_predictor.cls_score.weight", "fastrcnn/outputs/class/W"},
      {"roi_heads.mask_head.3.0.bias", "maskrcnn/fcn3/b"},
      {"roi_heads.mask_predictor.conv5_mask.weight", "maskrcnn/deconv/W"},
      {"roi_heads.mask_predictor.mask_fcn_logits.weight", "maskrcnn/conv/W"},
      {"backbone.fpn.inner_blocks.0.1.weight", "fpn/gn_c2/gamma"},
      {"backbone.fpn.layer_blocks.3.1.bias", "fpn/gn_p5/beta"},
      {"roi_heads.stage1.box_head.fc6.weight", "cascade_rcnn_stage1/head/fc6/W"},
      {"roi_heads.stage3.box_predictor.bbox_pred.bias", "cascade_rcnn_stage3/outputs/box/b"},
      {"roi_heads.stage2.box_predictor.cls_score.weight", "cascade_rcnn_stage2/outputs/class/W"},
      {"roi_heads.stage2.box_head.3.0.weight", "cascade_rcnn_stage2/head/conv3/W"},
      {"roi_heads.stage2.box_head.3.1.weight", "cascade_rcnn_stage2/head/gn3/gamma"},
      {"roi_heads.stage2.box_head.5.bias", "cascade_rcnn_stage2/head/fc/b"}};
  for (const auto& [ours, theirs] : pairs) EXPECT_EQ(tensorpack_name(ours), theirs);
  for (const char* name :
       {"", "fc.weight", "backbone.body.layerx.0.conv1.weight", "backbone.body.layer0.0.conv1.weight",
        "backbone.body.layer99999.0.conv1.weight", "backbone.body.conv1.weight.more"})
    EXPECT_EQ(tensorpack_name(name), "") << name;
}

TEST(TensorpackNames, EveryTensorIsLoaded) {
  const auto context = make_cpu_context();
  const TempDirectory folder;
  for (const DetectorOptions& options :
       {small_pyramid(false), small_pyramid(true), small_cascade(false), small_cascade(true), small_c4()}) {
    ParameterStore store(*context);
    const Detector detector(store, options);
    store.allocate(1);
    MadeUp file = file_for(store);
    for (const char* extra : {"linear/W", "learning_rate:0", "conv0/W/Momentum:0"}) file.add(extra, {1});
    const WeightReport report = load_detector(store, file.write(folder)).report;
    EXPECT_TRUE(report.complete()) << report.summary();
    EXPECT_EQ(report.loaded.size(), store.parameters().size() + store.buffers().size());
  }
}

TEST(TensorpackNames, ElementsAreTransposedCorrectly) {
  const auto context = make_cpu_context();
  const TempDirectory folder;
  ParameterStore store(*context);
  const Detector detector(store, small_detector());
  store.allocate(1);
  const MadeUp file = file_for(store);
  const double background = values_of(store, "roi_heads.mask_predictor.mask_fcn_logits.weight")[0];
  (void)load_detector(store, file.write(folder));

  // ours[out][row][column][in] = theirs[row][column][in][out], with BGR in the first layer.
  const auto stem = values_of(store, "backbone.body.conv1.weight"), &w0 = file.values.at("conv0/W");
  for (size_t k = 0; k < 64; ++k)
    for (size_t tap = 0; tap < 49; ++tap)
      for (size_t c = 0; c < 3; ++c)
        ASSERT_EQ(stem[(k * 49 + tap) * 3 + c], w0[(tap * 3 + 2 - c) * 64 + k]) << k << " " << tap << " " << c;
  const auto conv = values_of(store, "rpn.head.conv.0.0.weight"), &w1 = file.values.at("rpn/conv0/W");
  for (size_t k = 0; k < 32; ++k)
    for (size_t tap = 0; tap < 9; ++tap)
      for (size_t c = 0; c < 32; ++c) ASSERT_EQ(conv[(k * 9 + tap) * 32 + c], w1[(tap * 32 + c) * 32 + k]);

  // ours[in][row][column][out] = theirs[row][column][out][in]
  const auto deconv = values_of(store, "roi_heads.mask_predictor.conv5_mask.weight");
  const auto& w2 = file.values.at("maskrcnn/deconv/W");
  for (size_t in = 0; in < 32; ++in)
    for (size_t tap = 0; tap < 4; ++tap)
      for (size_t out = 0; out < 32; ++out)
        ASSERT_EQ(deconv[(in * 4 + tap) * 32 + out], w2[(tap * 32 + out) * 32 + in]);

  // ours[out][row and column][channel] = theirs[channel, row and column][out]
  const auto fc6 = values_of(store, "roi_heads.box_head.fc6.weight"), &w3 = file.values.at("fastrcnn/fc6/W");
  for (size_t out = 0; out < 5; ++out)
    for (size_t cell = 0; cell < 9; ++cell)
      for (size_t c = 0; c < 32; ++c) ASSERT_EQ(fc6[(out * 9 + cell) * 32 + c], w3[(c * 9 + cell) * 5 + out]);
  const auto fc7 = values_of(store, "roi_heads.box_head.fc7.weight"), &w4 = file.values.at("fastrcnn/fc7/W");
  for (size_t out = 0; out < 5; ++out)
    for (size_t in = 0; in < 5; ++in) ASSERT_EQ(fc7[out * 5 + in], w4[in * 5 + out]);
  const auto boxes = values_of(store, "roi_heads.box_predictor.bbox_pred.weight");
  for (size_t out = 0; out < 16; ++out)
    for (size_t in = 0; in < 5; ++in)
      ASSERT_EQ(boxes[out * 5 + in], file.values.at("fastrcnn/outputs/box/W")[in * 16 + out]);

  // TensorPack's mask outputs start with class 1.
  const auto masks = values_of(store, "roi_heads.mask_predictor.mask_fcn_logits.weight");
  EXPECT_EQ(masks[0], background);
  for (size_t k = 1; k < 4; ++k)
    for (size_t c = 0; c < 32; ++c) ASSERT_EQ(masks[k * 32 + c], file.values.at("maskrcnn/conv/W")[c * 3 + k - 1]);
  EXPECT_EQ(values_of(store, "roi_heads.mask_predictor.mask_fcn_logits.bias")[3], file.values.at("maskrcnn/conv/b")[2]);

  EXPECT_EQ(values_of(store, "backbone.body.layer4.1.bn2.weight"), file.values.at("group3/block1/conv2/bn/gamma"));
  EXPECT_EQ(values_of(store, "backbone.body.layer4.1.bn2.bias"), file.values.at("group3/block1/conv2/bn/beta"));
  EXPECT_EQ(values_of(store, "backbone.body.bn1.running_mean"), file.values.at("conv0/bn/mean/EMA"));
  EXPECT_EQ(values_of(store, "backbone.body.bn1.running_var"), file.values.at("conv0/bn/variance/EMA"));
}

// Names of equal layers depend on the detector variant.
TEST(TensorpackNames, DependOnTheDetectorVariant) {
  const auto context = make_cpu_context();
  const auto names = [&](const DetectorOptions& options, const std::vector<std::string>& ours) {
    ParameterStore store(*context);
    const Detector detector(store, options);
    std::vector<std::string> theirs;
    for (const std::string& name : ours) {
      EXPECT_NE(store.find(name), nullptr) << name;
      theirs.push_back(tensorpack_name(store, name));
    }
    return theirs;
  };
  EXPECT_EQ(names(small_c4(), {"roi_heads.box_predictor.cls_score.weight", "roi_heads.box_predictor.bbox_pred.bias",
                               "backbone.body.layer4.0.bn1.weight", "rpn.head.conv.0.0.weight",
                               "roi_heads.mask_predictor.conv5_mask.weight"}),
            (std::vector<std::string>{"fastrcnn/class/W", "fastrcnn/box/b", "group3/block0/conv1/bn/gamma",
                                      "rpn/conv0/W", "maskrcnn/deconv/W"}));
  EXPECT_EQ(names(small_cascade(true), {"backbone.body.bn1.weight", "backbone.body.layer2.0.downsample.1.bias",
                                        "backbone.body.layer3.0.bn3.weight", "roi_heads.stage1.box_head.0.0.weight"}),
            (std::vector<std::string>{"conv0/gn/gamma", "group1/block0/convshortcut/gn/beta",
                                      "group2/block0/conv3/gn/gamma", "cascade_rcnn_stage1/head/conv0/W"}));
}

// Gammas of batch norms do not match group norms.
TEST(TensorpackNames, BatchNormsDoNotLoadAsGroupNorms) {
  const auto context = make_cpu_context();
  const TempDirectory folder;
  ParameterStore store(*context);
  const Detector detector(store, small_cascade(true));
  store.allocate(1);
  MadeUp file;
  file.add("conv0/W", {7, 7, 3, 64});
  file.add("conv0/bn/gamma", {64});
  const WeightReport report = load_detector(store, file.write(folder)).report;
  EXPECT_EQ(report.loaded, std::vector<std::string>{"backbone.body.conv1.weight"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"conv0/bn/gamma"});
  EXPECT_EQ(report.missing[0], "backbone.body.bn1.weight (conv0/gn/gamma)");
}

TEST(TensorpackNames, ReportsMismatches) {
  const auto context = make_cpu_context();
  const TempDirectory folder;
  ParameterStore store(*context);
  EXPECT_THROW((void)load_detector(store, "x"), Error);
  const Detector detector(store, small_detector());
  store.allocate(1);
  MadeUp file;
  file.add("conv0/W", {7, 7, 3, 64});
  file.add("rpn/conv0/b", {33});
  file.add("cascade_rcnn_stage1/head/fc6/W", {2, 2});
  const WeightReport report = load_detector(store, file.write(folder)).report;
  EXPECT_EQ(report.loaded, std::vector<std::string>{"backbone.body.conv1.weight"});
  EXPECT_EQ(report.mismatched, std::vector<std::string>{"rpn/conv0/b: file [33], model [32]"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"cascade_rcnn_stage1/head/fc6/W"});
  EXPECT_EQ(report.missing.size(), store.parameters().size() + store.buffers().size() - 2);
  EXPECT_EQ(report.missing[0], "backbone.body.bn1.weight (conv0/bn/gamma)");

  MadeUp other;
  other.add("something/else", {1});
  expect_error([&] { (void)load_detector(store, other.write(folder)); }, Fault::data, "does not fit the model");
  MadeUp infinite;
  infinite.writer.add("rpn/class/b", "(3,)", {0, INFINITY, 0});
  expect_error([&] { (void)load_detector(store, infinite.write(folder)); }, Fault::numeric,
               "element 1 of rpn/class/b is not finite");
}

}  // namespace
}  // namespace dtrain::models
