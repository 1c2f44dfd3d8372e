// Detector weight files of several programs: detectron2's layouts, bit-exact round trips, detection of formats, reports
// and corrupt files.
#include "dtrain/models/detection/weight_files.h"

#include <cstring>
#include <map>

#include "dtrain/core/rng.h"
#include "dtrain/models/detection/detector.h"
#include "tests/files.h"
#include "tests/npz_writer.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

constexpr int64_t kFileClasses = 4;

DetectorOptions tiny_detector(bool convolutions = false) {
  DetectorOptions options;
  options.classes = kFileClasses;
  options.channels = 8;
  options.backbone = {.blocks = {1, 1, 1, 1}, .batch_norm = {.frozen = true}};
  options.box.features = 6;
  options.box.resolution = 3;
  options.mask.channels = 32;
  options.mask.convolutions = 2;
  if (convolutions) {
    options.box.convolutions = 4;
    options.box.linear_layers = 1;
    options.box.channels = 32;
    options.box.group_norm = options.mask.group_norm = true;
  }
  return options;
}

// Detector with distinct values in all parameters and buffers.
struct Numbered {
  explicit Numbered(Context& context, uint64_t seed, bool convolutions = false)
      : store(context), detector(store, tiny_detector(convolutions)) {
    store.allocate(seed);
    auto next = static_cast<uint32_t>(seed);
    for (const Tensor& tensor : tensors())
      for (float& value : tensor.span<float>()) value = static_cast<float>((next += 2654435761u) >> 8) / 1024 - 8000;
  }
  std::vector<Tensor> tensors() {
    std::vector<Tensor> all;
    for (const Parameter& parameter : store.parameters()) all.push_back(parameter.value);
    for (const Buffer& buffer : store.buffers()) all.push_back(buffer.value);
    return all;
  }
  std::set<std::string> names() {
    std::set<std::string> all;
    for (const Parameter& parameter : store.parameters()) all.insert(parameter.name);
    for (const Buffer& buffer : store.buffers()) all.insert(buffer.name);
    return all;
  }
  std::span<float> values(const std::string& name) { return store.find(name)->value.span<float>(); }
  // Zeroes background outputs that other programs do not predict.
  void zero_background() {
    for (const char* part : {".weight", ".bias"}) {
      for (const auto& [layer, outputs] : {std::pair{"roi_heads.box_predictor.bbox_pred", 4 * kFileClasses},
                                           {"roi_heads.mask_predictor.mask_fcn_logits", kFileClasses}}) {
        const auto all = values(std::string(layer) + part);
        std::ranges::fill(
            all.first(all.size() / static_cast<size_t>(outputs) * static_cast<size_t>(outputs / kFileClasses)), 0.0f);
      }
    }
  }

  ParameterStore store;
  Detector detector;
};

class WeightFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string saved(Numbered& model, const WeightNames& names, ArrayFormat format, const std::string& name) const {
    save_detector(model.store, model.names(), names, format, path(name));
    return path(name);
  }

  std::unique_ptr<Context> context_ = make_cpu_context();
  TempDirectory folder_;
};

const WeightNames& program(const std::string& id) {
  for (const WeightNames* const names : all_weight_names())
    if (names->id == id) return *names;
  throw std::logic_error(id);
}

TEST(Detectron2Names, MatchItsStateDict) {
  const std::pair<const char*, const char*> pairs[] = {
      {"backbone.body.conv1.weight", "backbone.bottom_up.stem.conv1.weight"},
      {"backbone.body.bn1.running_var", "backbone.bottom_up.stem.conv1.norm.running_var"},
      {"backbone.body.layer1.0.conv1.weight", "backbone.bottom_up.res2.0.conv1.weight"},
      {"backbone.body.layer3.22.bn3.weight", "backbone.bottom_up.res4.22.conv3.norm.weight"},
      {"backbone.body.layer4.0.downsample.0.weight", "backbone.bottom_up.res5.0.shortcut.weight"},
      {"backbone.body.layer4.0.downsample.1.running_mean", "backbone.bottom_up.res5.0.shortcut.norm.running_mean"},
      {"backbone.fpn.inner_blocks.0.0.weight", "backbone.fpn_lateral2.weight"},
      {"backbone.fpn.layer_blocks.3.0.bias", "backbone.fpn_output5.bias"},
      {"rpn.head.conv.0.0.weight", "proposal_generator.rpn_head.conv.weight"},
      {"rpn.head.cls_logits.bias", "proposal_generator.rpn_head.objectness_logits.bias"},
      {"rpn.head.bbox_pred.weight", "proposal_generator.rpn_head.anchor_deltas.weight"},
      {"roi_heads.box_head.fc6.weight", "roi_heads.box_head.fc1.weight"},
      {"roi_heads.box_head.0.0.weight", "roi_heads.box_head.conv1.weight"},
      {"roi_heads.box_head.0.1.bias", "roi_heads.box_head.conv1.norm.bias"},
      {"roi_heads.box_head.5.weight", "roi_heads.box_head.fc1.weight"},
      {"roi_heads.box_predictor.cls_score.bias", "roi_heads.box_predictor.cls_score.bias"},
      {"roi_heads.mask_head.3.0.weight", "roi_heads.mask_head.mask_fcn4.weight"},
      {"roi_heads.mask_predictor.conv5_mask.bias", "roi_heads.mask_head.deconv.bias"},
      {"roi_heads.mask_predictor.mask_fcn_logits.weight", "roi_heads.mask_head.predictor.weight"}};
  for (const auto& [ours, theirs] : pairs) EXPECT_EQ(foreign_name(program("detectron2"), ours).text, theirs);
}

TEST_F(WeightFiles, Detectron2HasBackgroundLastOrNone) {
  Numbered model(*context_, 1);
  const ArrayFile file(saved(model, program("detectron2"), ArrayFormat::safetensors, "d2.safetensors"));
  const auto array = [&](const std::string& name, const Shape& shape) {
    const ArrayEntry* const entry = file.find(name);
    EXPECT_TRUE(entry && entry->shape == shape) << name;
    return file.read(*entry);
  };
  const auto scores = model.values("roi_heads.box_predictor.cls_score.weight");
  const auto their_scores = array("roi_heads.box_predictor.cls_score.weight", {4, 6});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(their_scores[3 * 6 + i], scores[i]);  // background
    EXPECT_EQ(their_scores[0 * 6 + i], scores[1 * 6 + i]);
    EXPECT_EQ(their_scores[2 * 6 + i], scores[3 * 6 + i]);
  }
  const auto boxes = model.values("roi_heads.box_predictor.bbox_pred.bias");
  const auto their_boxes = array("roi_heads.box_predictor.bbox_pred.bias", {12});
  EXPECT_TRUE(std::ranges::equal(their_boxes, boxes.subspan(4)));
  const auto masks = model.values("roi_heads.mask_predictor.mask_fcn_logits.weight");
  EXPECT_TRUE(std::ranges::equal(array("roi_heads.mask_head.predictor.weight", {3, 32, 1, 1}), masks.subspan(32)));
  // [k][c][tap] of BGR, from [k][tap][c] of RGB.
  const auto stem = model.values("backbone.body.conv1.weight");
  const auto their_stem = array("backbone.bottom_up.stem.conv1.weight", {64, 3, 7, 7});
  for (size_t k = 0; k < 64; ++k)
    for (size_t tap = 0; tap < 49; ++tap)
      for (size_t c = 0; c < 3; ++c) ASSERT_EQ(their_stem[(k * 3 + 2 - c) * 49 + tap], stem[(k * 49 + tap) * 3 + c]);
  // [out][channel][cell] from [out][cell][channel].
  const auto fc = model.values("roi_heads.box_head.fc6.weight");
  const auto their_fc = array("roi_heads.box_head.fc1.weight", {6, 72});
  for (size_t out = 0; out < 6; ++out)
    for (size_t cell = 0; cell < 9; ++cell)
      for (size_t c = 0; c < 8; ++c) ASSERT_EQ(their_fc[out * 72 + c * 9 + cell], fc[(out * 9 + cell) * 8 + c]);
}

// torchvision's layout is that of load_weights() and save_weights(), which are tested against PyTorch.
TEST_F(WeightFiles, TorchvisionLayoutEqualsCheckpoints) {
  for (const bool convolutions : {false, true}) {
    Numbered model(*context_, 2, convolutions);
    save_weights(model.store, path("checkpoint.safetensors"));
    const std::string ours = saved(model, program("torchvision"), ArrayFormat::safetensors, "ours.safetensors");
    EXPECT_TRUE(read_file(ours) == read_file(path("checkpoint.safetensors")));
  }
}

// Loading and saving through any program's names gives the same file.
TEST_F(WeightFiles, RoundTripsAreExact) {
  for (const bool convolutions : {false, true}) {
    Numbered model(*context_, 3, convolutions), between(*context_, 4, convolutions), back(*context_, 5, convolutions);
    for (Numbered* const one : {&model, &between, &back}) one->zero_background();
    for (const WeightNames* const first : all_weight_names().first(convolutions || sanitized() ? 1 : 3)) {
      const std::string begin = saved(model, *first, ArrayFormat::safetensors, "begin");
      const LoadedWeights loaded = load_detector(between.store, begin);
      EXPECT_EQ(&loaded.names, first);
      EXPECT_TRUE(loaded.report.complete()) << loaded.report.summary();
      for (const WeightNames* const second : all_weight_names()) {
        if (second == first) continue;
        EXPECT_EQ(&load_detector(back.store, saved(between, *second, ArrayFormat::npz, "middle")).names, second);
        EXPECT_TRUE(read_file(saved(back, *first, ArrayFormat::safetensors, "end")) == read_file(begin))
            << first->id << " " << second->id;
        std::ranges::fill(back.values("rpn.head.conv.0.0.weight"), 1.0f);
      }
    }
  }
}

TEST_F(WeightFiles, CountsClasses) {
  Numbered model(*context_, 6);
  for (const WeightNames* const names : all_weight_names())
    EXPECT_EQ(classes_of_weights(saved(model, *names, ArrayFormat::npz, "x.npz")), kFileClasses) << names->id;
  NpzWriter writer;
  writer.add("conv0/W", "(1,)", {1});
  write_file(path("none.npz"), writer.archive());
  EXPECT_EQ(classes_of_weights(path("none.npz")), std::nullopt);
  for (const int64_t classes : {1, 70'000}) {
    NpzWriter odd;
    odd.add("fastrcnn/outputs/class/b", concat("(", classes, ",)"), std::vector<float>(static_cast<size_t>(classes)),
            true);
    write_file(path("odd.npz"), odd.archive());
    expect_error([&] { classes_of_weights(path("odd.npz"), Fault::checkpoint); }, Fault::checkpoint, "2 to 65536");
  }
}

TEST_F(WeightFiles, ReportsMismatches) {
  Numbered model(*context_, 7);
  const std::string names = "proposal_generator.rpn_head.";
  const TensorSpec specs[] = {{names + "conv.bias", DType::f32, {8}},
                              {names + "objectness_logits.bias", DType::f32, {5}},
                              {names + "anchor_deltas.bias", DType::i64, {}},
                              {"proposal_generator.anchor_generator.cell_anchors.0", DType::f32, {1}},
                              {"teacher.weight", DType::f32, {1}}};
  AtomicFile file(path("odd.safetensors"));
  ArrayOutput output(file.output(), ArrayFormat::safetensors, specs);
  const std::vector<double> zeros(8);
  for (size_t i = 0; i < std::size(specs); ++i) output.write(zeros.data());
  output.finish();
  file.commit();
  const LoadedWeights loaded = load_detector(model.store, path("odd.safetensors"));
  EXPECT_EQ(loaded.names.id, "detectron2");
  EXPECT_EQ(loaded.report.loaded, std::vector<std::string>{"rpn.head.conv.0.0.bias"});
  EXPECT_EQ(loaded.report.mismatched,
            (std::vector<std::string>{names + "objectness_logits.bias: file [5], model [3]",
                                      names + "anchor_deltas.bias: file I64 [], model F32 [12]"}));
  EXPECT_EQ(loaded.report.unexpected, std::vector<std::string>{"teacher.weight"});
  EXPECT_EQ(loaded.report.missing[0], "backbone.body.conv1.weight (backbone.bottom_up.stem.conv1.weight)");
}

TEST_F(WeightFiles, RejectsParametersWithoutForeignName) {
  DetectorOptions options = tiny_detector(true);
  options.box.linear_layers = 2;
  ParameterStore store(*context_);
  const Detector detector(store, options);
  store.allocate(1);
  const std::set<std::string> second = {"roi_heads.box_head.7.weight"};
  expect_error([&] { save_detector(store, second, program("tensorpack"), ArrayFormat::npz, path("x.npz")); },
               Fault::config, "TensorPack has no name for roi_heads.box_head.7.weight");
  save_detector(store, second, program("detectron2"), ArrayFormat::npz, path("x.npz"));
  EXPECT_EQ(ArrayFile(path("x.npz")).entries()[0].name, "roi_heads.box_head.fc2.weight");
}

TEST_F(WeightFiles, RejectsPicklesOfOtherObjects) {
  Numbered model(*context_, 8);
  NpzWriter zipped;
  const std::string pickle =
      "\x80\x02}U\x01"
      "acposix\nsystem\ns.";
  zipped.members.push_back({"archive/data.pkl", pickle});
  for (const std::string& bytes : {pickle, zipped.archive()}) {
    write_file(path("model_final.pth"), bytes);
    expect_error([&] { (void)load_detector(model.store, path("model_final.pth")); }, Fault::data,
                 "it names posix.system");
  }
}

// Truncated and mutated files are rejected or load the values that they hold.
TEST_F(WeightFiles, TruncatedAndMutated) {
  Numbered model(*context_, 9), other(*context_, 10);
  const std::set<std::string> few = {"rpn.head.conv.0.0.bias", "rpn.head.cls_logits.bias"};
  RandomStream random(11, 0);
  for (const ArrayFormat format : {ArrayFormat::safetensors, ArrayFormat::npz}) {
    save_detector(model.store, few, program("detectron2"), format, path("whole"));
    const std::string whole = read_file(path("whole"));
    const auto attempt = [&](const std::string& bytes) {
      write_file(path("x"), bytes);
      try {
        (void)load_detector(other.store, path("x"));
      } catch (const Error& error) {
        ASSERT_TRUE(error.fault() == Fault::data || error.fault() == Fault::numeric) << error.what();
      }
    };
    for (size_t size = 0; size < whole.size(); ++size) attempt(whole.substr(0, size));
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 + random.below(255)));
      attempt(bytes);
    }
  }
}

}  // namespace
}  // namespace dtrain::models
