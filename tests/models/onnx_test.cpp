// ONNX models: the bytes of a graph, its attributes, and what of a model is refused. tests/parity runs the models.
#include "models/onnx/graph.h"

#include "dtrain/models/catalog.h"
#include "dtrain/models/detection/onnx.h"
#include "dtrain/models/onnx/classifier.h"
#include "dtrain/ops/gating.h"
#include "dtrain/ops/pointwise.h"
#include "models/onnx/layers.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

// Fields of protobuf's wire format: whole numbers below 128, and texts and messages of fewer bytes.
std::string number(int field, int value) { return {static_cast<char>(field << 3), static_cast<char>(value)}; }
std::string bytes(int field, const std::string& value) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(value.size())} + value;
}

class OnnxFiles : public testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "m.onnx").string(); }

  TempDirectory folder_;
};

TEST_F(OnnxFiles, WritesCompleteGraph) {
  OnnxGraph graph("g");
  const OnnxValue x = graph.input("x", OnnxType::f32, {"n", int64_t{2}}, "in");
  const float ones[] = {1, 1};
  graph.output(graph.add("Add", {x, graph.floats(ones, {2}, "ones")}), "y", OnnxType::f32, {"n", int64_t{2}}, "out");
  graph.floats(ones, {2}, "ones");  // made once
  graph.write(path());
  const std::string add = bytes(1, "x") + bytes(1, "ones") + bytes(2, "Add_0") + bytes(3, "Add_0") + bytes(4, "Add");
  const std::string identity = bytes(1, "Add_0") + bytes(2, "y") + bytes(3, "y") + bytes(4, "Identity");
  const std::string tensor =
      number(1, 2) + number(2, 1) + bytes(8, "ones") + bytes(9, std::string("\0\0\x80\x3f\0\0\x80\x3f", 8));
  const std::string type = number(1, 1) + bytes(2, bytes(1, bytes(2, "n")) + bytes(1, number(1, 2)));
  const auto value = [&](const char* name, const char* about) {
    return bytes(1, name) + bytes(2, bytes(1, type)) + bytes(3, about);
  };
  const std::string whole = bytes(1, add) + bytes(1, identity) + bytes(2, "g") + bytes(5, tensor) +
                            bytes(11, value("x", "in")) + bytes(12, value("y", "out"));
  const std::string size = {static_cast<char>(7 << 3 | 2), static_cast<char>(whole.size() % 128 | 128),
                            static_cast<char>(whole.size() / 128)};
  EXPECT_EQ(read_file(path()), number(1, 8) + bytes(2, "dtrain") + size + whole + bytes(8, number(2, 17)));
  expect_error([&] { graph.floats(ones, {3}); }, Fault::config, "2 numbers for [3]");
}

TEST_F(OnnxFiles, AttributesHaveTheirTypes) {
  OnnxGraph graph("g");
  graph.add("Op", {}, {{"i", int64_t{-2}}, {"f", 1.5f}, {"s", "same"}, {"l", std::vector<int64_t>{1, 150}}});
  graph.write(path());
  const std::string expected[] = {
      bytes(1, "i") + number(3, 0xfe) + "\xff\xff\xff\xff\xff\xff\xff\xff\x01" + std::string("\xa0\x01\x02"),
      bytes(1, "f") + std::string("\x15\0\0\xc0\x3f\xa0\x01\x01", 8),
      bytes(1, "s") + bytes(4, "same") + "\xa0\x01\x03",
      bytes(1, "l") + number(8, 1) + number(8, 0x96) + "\x01\xa0\x01\x07",
  };
  for (const std::string& attribute : expected)
    EXPECT_NE(read_file(path()).find(bytes(5, attribute)), std::string::npos) << attribute;
}

TEST_F(OnnxFiles, AFullDiskIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "SKIPPED: no /dev/full";
  OnnxGraph graph("g");
  graph.floats(std::vector<float>(3 << 20), {3 << 20});
  expect_error([&] { graph.write("/dev/full"); }, Fault::resource, "/dev/full");
}

DetectorOptions small_options() {
  DetectorOptions options;
  options.classes = 3;
  options.channels = 8;
  options.backbone = {.blocks = {1, 1, 1, 1}, .batch_norm = {.frozen = true}};
  options.box.features = 4;
  options.mask.channels = 8;
  return options;
}

const OnnxImage kImage{
    .height = 40, .width = 50, .canvas_height = 64, .canvas_width = 64, .resized_height = 40, .resized_width = 50};

TEST_F(OnnxFiles, RejectsUnusedAndMissingParameters) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Detector detector(store, small_options());
  store.add("roi_heads.1.box_head.fc6.weight", {2, 2}, Init::constant(0));
  store.allocate(1);
  expect_error([&] { export_onnx(store, detector, kImage, path()); }, Fault::config,
               "roi_heads.1.box_head.fc6.weight is of a layer that cannot be exported");
  ParameterStore empty(*context);
  empty.add("backbone.body.conv1.bias", {2}, Init::constant(0));
  empty.allocate(1);
  expect_error([&] { export_onnx(empty, detector, kImage, path()); }, Fault::config,
               "no parameter backbone.body.conv1.weight");
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(OnnxFiles, RejectsImagesLargerThanCanvas) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Detector detector(store, small_options());
  store.allocate(1);
  OnnxImage odd = kImage;
  odd.canvas_width = 60;
  expect_error([&] { export_onnx(store, detector, odd, path()); }, Fault::config, "on a canvas of 64 x 60");
  odd = kImage;
  odd.resized_height = 65;
  expect_error([&] { export_onnx(store, detector, odd, path()); }, Fault::config, "resized to 65 x 50");
  export_onnx(store, detector, kImage, path());
  const std::string first = read_file(path());
  export_onnx(store, detector, kImage, path());
  EXPECT_EQ(read_file(path()), first);
  // Contains all weights.
  EXPECT_GT(first.size(), static_cast<size_t>(store.parameter_count()) * sizeof(float));
}

TEST_F(OnnxFiles, RejectsAuxiliaryHeads) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Classifier model = make_classifier(store, classifier_info("nasnet", "cifar10"), {.auxiliary_head = true});
  store.allocate(1);
  expect_error([&] { export_onnx(store, model, {}, path()); }, Fault::config,
               "aux_11.aux_logits.proj.weight is of a layer that cannot be exported");
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(OnnxFiles, RejectsUnsupportedClassifierOps) {
  const auto context = make_cpu_context();
  ParameterStore store(*context), others(*context);
  Parameter& foreign = others.add("w.weight", {3, 1, 1, 3}, Init::constant(0), {.layout = Layout::krsc});
  others.allocate(1);
  store.allocate(1);
  Classifier model{.name = "m", .classes = 12, .image_size = 2};
  const auto refused = [&](const std::function<Var(Tape&, const Var&)>& layer, const char* why) {
    model.network = [layer](Tape& tape, const Var& x, std::vector<Var>*) { return layer(tape, x); };
    expect_error([&] { export_onnx(store, model, {}, path()); }, Fault::config, why);
  };
  refused([](Tape& tape, const Var& x) { return sigmoid(tape, x); }, "an op sigmoid, which cannot be exported");
  refused([&](Tape& tape, const Var& x) { return conv2d(tape, x, tape.leaf(foreign)); }, "is none of its parameters");
  refused(
      [](Tape& tape, const Var& x) {
        return add(tape, x, tape.constant(tape.context().zeros({1, 2, 2, 3})));
      },
      "a tensor [1, 2, 2, 3] that the model reads comes from no op");
  refused([](Tape& tape, const Var& x) { return reshape(tape, x, {3, 4}); }, "a reshape from [1, 2, 2, 3] to [3, 4]");
  model.network = [](Tape& tape, const Var& x, std::vector<Var>*) { return flatten(tape, relu(tape, x)); };
  export_onnx(store, model, {}, path());
  EXPECT_NE(read_file(path()).find("Relu"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::models
