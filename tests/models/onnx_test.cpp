// ONNX export: wire format, serialised graphs, and rejected models. tests/parity runs the exported models.
#include "models/onnx/graph.h"

#include "libdtrain/ops/gating.h"
#include "libdtrain/ops/pointwise.h"
#include "models/catalog.h"
#include "models/detection/onnx.h"
#include "models/onnx/classifier.h"
#include "models/onnx/layers.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

std::string bytes_of(const std::vector<int>& bytes) { return {bytes.begin(), bytes.end()}; }

// Examples of protobuf's encoding guide.
TEST(OnnxProto, MatchesEncodingGuide) {
  EXPECT_EQ(ProtoMessage().number(1, 150).bytes(), bytes_of({0x08, 0x96, 0x01}));
  EXPECT_EQ(ProtoMessage().number(1, 128).bytes(), bytes_of({0x08, 0x80, 0x01}));
  EXPECT_EQ(ProtoMessage().text(2, "testing").bytes(), bytes_of({0x12, 7, 't', 'e', 's', 't', 'i', 'n', 'g'}));
  EXPECT_EQ(ProtoMessage().message(3, ProtoMessage().number(1, 150)).bytes(), bytes_of({0x1a, 3, 0x08, 0x96, 0x01}));
  EXPECT_EQ(ProtoMessage().number(1, -2).bytes(),
            bytes_of({0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  EXPECT_EQ(ProtoMessage().real(20, 1.5f).bytes(), bytes_of({0xa5, 0x01, 0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(ProtoMessage().head(2, 300).bytes(), bytes_of({0x12, 0xac, 0x02}));
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
  const std::string add =
      ProtoMessage().text(1, "x").text(1, "ones").text(2, "Add_0").text(3, "Add_0").text(4, "Add").bytes();
  const std::string identity = ProtoMessage().text(1, "Add_0").text(2, "y").text(3, "y").text(4, "Identity").bytes();
  const std::string tensor = ProtoMessage()
                                 .number(1, 2)
                                 .number(2, 1)
                                 .text(8, "ones")
                                 .text(9, std::string("\0\0\x80\x3f\0\0\x80\x3f", 8))
                                 .bytes();
  const ProtoMessage shape =
      ProtoMessage().message(1, ProtoMessage().text(2, "n")).message(1, ProtoMessage().number(1, 2));
  const auto value = [&](const char* name, const char* about) {
    const ProtoMessage type = ProtoMessage().number(1, 1).message(2, shape);
    return ProtoMessage().text(1, name).message(2, ProtoMessage().message(1, type)).text(3, about).bytes();
  };
  ProtoMessage whole;
  whole.text(1, add)
      .text(1, identity)
      .text(2, "g")
      .text(5, tensor)
      .text(11, value("x", "in"))
      .text(12, value("y", "out"));
  EXPECT_EQ(
      read_file(path()),
      ProtoMessage().number(1, 8).text(2, "dtrain").message(8, ProtoMessage().number(2, 17)).message(7, whole).bytes());
  expect_error([&] { graph.floats(ones, {3}); }, Fault::config, "2 numbers for [3]");
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
