// dtrain-convert: copies between formats bit for bit, names of other programs, the report, and errors.
#include <algorithm>
#include <cstring>
#include <map>

#include "dtrain/io/array_file.h"
#include "dtrain/models/catalog.h"
#include "dtrain/train/weights.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Arguments = std::vector<std::string>;

constexpr char kModel[] = "official_resnet18_v2";  // timm names it otherwise

// Type, shape and elements by name.
struct Content {
  std::string type;
  Shape shape;
  std::string elements;
  bool operator==(const Content&) const = default;
};
std::map<std::string, Content> content_of(const std::string& path) {
  const ArrayFile file(path);
  std::map<std::string, Content> content;
  for (const ArrayEntry& entry : file.entries())
    if (const std::string type = file.safetensors_type(entry); !type.empty())
      content[entry.name] = {type, entry.shape, file.read_bytes(entry)};
  return content;
}

class Convert : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  static std::string torch_path(const std::string& name) { return (source_dir() / "tests/io/torch" / name).string(); }

  ProgramResult convert(const std::string& from, const std::string& to, Arguments more = {}) const {
    more.insert(more.begin(), {from.find('/') == from.npos ? path(from) : from, path(to)});
    return run_program("dtrain-convert", more);
  }
  std::string report(const std::string& from, const std::string& to, const Arguments& more = {}) const {
    const ProgramResult done = convert(from, to, more);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  }
  void expect_error(const ProgramResult& result, int code, const std::string& part) const {
    EXPECT_EQ(result.code, code) << result.err << result.out;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }

  // Three classes, and 17 counted batches.
  void save_classifier(const std::string& name, const models::ClassifierInfo& info, int size,
                       const WeightsRecord& record = {}) const {
    const auto context = make_cpu_context({.threads = 1});
    ParameterStore store(*context);
    models::make_classifier(store, info, {.classes = 3, .image_size = size});
    store.allocate(3);
    save_weights(store, path(name), 17, record);
  }

  TempDirectory folder_;
};

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Convert, CopiesFilesOfPyTorchBitForBit) {
  for (const char* form : {"archive.pth", "legacy.pth"}) {
    SCOPED_TRACE(form);
    const std::string first = report(torch_path(form), "a.npz", {"--force"});
    expect_part(first, "\nbrain  F32 [4], from BF16\n");  // NumPy has no BF16
    expect_part(first, "Cast:        1\n");
    expect_part(first, "Left out:    0\n");
    EXPECT_EQ(report("a.npz", "b.safetensors", {"--summary", "--force"}).rfind("Read: ", 0), 0u);
    expect_part(report(torch_path(form), "c.safetensors", {"--force"}), "\nflags  BOOL [2]\n");
    const auto original = content_of(torch_path(form)), direct = content_of(path("c.safetensors"));
    EXPECT_EQ(original.size(), 12u);
    EXPECT_EQ(direct, original);
    auto expected = original;
    Content& widened = expected["brain"];
    std::string elements(16, '\0');
    for (size_t i = 0; i < 4; ++i) std::memcpy(elements.data() + 4 * i + 2, widened.elements.data() + 2 * i, 2);
    widened = {"F32", widened.shape, elements};
    EXPECT_EQ(content_of(path("a.npz")), expected);
    EXPECT_EQ(content_of(path("b.safetensors")), expected);
  }
}

TEST_F(Convert, StripsThePrefixesOfWrappers) {
  const std::string text = report(torch_path("lightning.ckpt"), "x.npz");
  expect_part(text, "weight  F32 [1, 2], from model.weight\n");
  expect_part(text, "Stripped:    2 names of a wrapper's prefix\n");
  expect_part(text,
              "Not read:    epoch, pytorch-lightning_version, hyper_parameters; the weights are under state_dict\n");
  EXPECT_EQ(content_of(path("x.npz")).size(), 2u);
}

// `model.` stays where other names do not have it, and all prefixes where names would collide.
TEST_F(Convert, KeepsNamesThatStrippingWouldConfuse) {
  struct Case {
    std::vector<std::string> given, expected;
  };
  for (const Case& one : {Case{{"module.a", "module.model.b"}, {"a", "model.b"}},
                          Case{{"model.a", "head"}, {"head", "model.a"}}, Case{{"a", "module.a"}, {"a", "module.a"}},
                          Case{{"module._orig_mod.model.a"}, {"a"}}, Case{{"module."}, {"module."}}}) {
    std::vector<TensorSpec> specs;
    for (const std::string& name : one.given) specs.push_back({name, DType::u8, {1}});
    write_file(path("names.safetensors"), safetensors_header(specs) + std::string(specs.size(), 'x'));
    report("names.safetensors", "names.npz", {"--force"});
    std::vector<std::string> names;
    for (const auto& [name, content] : content_of(path("names.npz"))) names.push_back(name);
    EXPECT_EQ(names, one.expected);
  }
}

TEST_F(Convert, NamesWhatAFormatCannotHold) {
  const std::vector<SafetensorsEntry> entries = {{"a", "F8_E4M3", {2}}, {"b", "U16", {1}}};
  write_file(path("f8.safetensors"), safetensors_header(entries) + "1234");
  const std::string text = report("f8.safetensors", "f8.npz");
  expect_part(text, "Left out:    1\n  a: NumPy does not have the type F8_E4M3; safetensors have it\n");
  expect_part(text, "1 tensors, 2 bytes\n");
  report("f8.safetensors", "again.safetensors");
  EXPECT_EQ(content_of(path("again.safetensors")), content_of(path("f8.safetensors")));
  write_file(path("only.safetensors"), safetensors_header(std::span(entries).first(1)) + "12");
  expect_error(convert("only.safetensors", "none.npz"), 5, "it has no tensor that");
  EXPECT_FALSE(std::filesystem::exists(path("none.npz")));
}

TEST_F(Convert, CastsToF32OnRequest) {
  report(torch_path("archive.pth"), "f32.safetensors", {"--dtype=f32"});
  const auto content = content_of(path("f32.safetensors"));
  for (const char* name : {"half", "brain", "double", "base"}) EXPECT_EQ(content.at(name).type, "F32") << name;
  EXPECT_EQ(content.at("batches").type, "I64");
  const double huge = 1e300;
  const std::vector<SafetensorsEntry> entries = {{"x", "F64", {1}}};
  write_file(path("huge.safetensors"),
             safetensors_header(entries) + std::string(reinterpret_cast<const char*>(&huge), sizeof huge));
  expect_error(convert("huge.safetensors", "huge.npz", {"--dtype=f32"}), 3, "element 0 of x is 1e+300");
  report("huge.safetensors", "huge.npz");
  EXPECT_EQ(content_of(path("huge.npz")), content_of(path("huge.safetensors")));
}

TEST_F(Convert, RenamesClassifiersBothWays) {
  save_classifier("w.safetensors", models::classifier_info(kModel, "imagenet"), 32);
  const Arguments model = {std::string("--model=") + kModel, "--image_size=32"};
  const auto with = [&](const char* names) {
    Arguments words = model;
    words.push_back(names);
    return words;
  };
  const std::string there = report("w.safetensors", "timm.npz", with("--names=timm"));
  expect_part(there, "head.fc.weight  F32 [3, 512, 1, 1], from fc.weight [3, 512]\n");
  expect_part(there, "norm.num_batches_tracked  I64 []");
  expect_part(there, "torchvision's names to timm's\n");
  const std::string back = report("timm.npz", "back.safetensors", with("--names=torchvision"));
  expect_part(back, "timm's names to torchvision's\n");
  EXPECT_EQ(content_of(path("back.safetensors")), content_of(path("w.safetensors")));
  report("timm.npz", "default.safetensors", model);
  EXPECT_EQ(content_of(path("default.safetensors")), content_of(path("w.safetensors")));
  expect_error(convert("w.safetensors", "x.npz", with("--names=detectron2")), 1, "expected torchvision or timm");
  expect_error(convert("w.safetensors", "x.npz", {"--model=resnet18", "--image_size=32"}), 5, "does not fit resnet18");
}

TEST_F(Convert, KeepsTheRecordOfATraining) {
  save_classifier("w.safetensors", models::classifier_info("lenet", "mnist"), 28,
                  {{"model", "lenet"},
                   {"classes", "3"},
                   {"image size", "28"},
                   {"data name", "mnist"},
                   {"preprocessing", "tf_cnn"}});
  report("w.safetensors", "copy.safetensors");
  EXPECT_EQ(SafetensorsFile(path("copy.safetensors")).metadata(), SafetensorsFile(path("w.safetensors")).metadata());
  report("copy.safetensors", "timm.safetensors", {"--names=timm"});  // the record states the model
  EXPECT_EQ(SafetensorsFile(path("timm.safetensors")).metadata(), SafetensorsFile(path("w.safetensors")).metadata());
  expect_part(report("timm.safetensors", "m.onnx"), "3 classes, images of 28 x 28\n");
  const ProgramResult classified =
      run_program("dtrain-classify", {"--weights=" + path("w.safetensors"), "--onnx=" + path("c.onnx")});
  ASSERT_EQ(classified.code, 0) << classified.err;
  EXPECT_TRUE(read_file(path("m.onnx")) == read_file(path("c.onnx")));
}

TEST_F(Convert, ReplacesFilesOnRequestOnly) {
  write_file(path("x.npz"), "precious");
  expect_error(convert(torch_path("archive.pth"), "x.npz"), 1, "exists; give --force");
  EXPECT_EQ(read_file(path("x.npz")), "precious");
  expect_error(convert(torch_path("system.pth"), "x.npz", {"--force"}), 5, "it names posix.system");
  EXPECT_EQ(read_file(path("x.npz")), "precious");
  report(torch_path("archive.pth"), "x.npz", {"--force"});
  report("x.npz", "x.npz", {"--force"});
  EXPECT_EQ(content_of(path("x.npz")).size(), 12u);
}

TEST_F(Convert, RefusesFlagsThatItWouldNotUse) {
  const std::string weights = torch_path("archive.pth");
  expect_error(convert(weights, "x.npz", {"--image_size=32"}), 1, "--image_size: needs --model");
  expect_error(convert(weights, "x.npz", {"--preset=torchvision"}), 1, "--preset: needs --model");
  expect_error(convert(weights, "x.npz", {"--model=lenet", "--height=32"}), 1, "--height: is for detectors");
  expect_error(convert(weights, "x.npz", {"--model=mask_rcnn", "--image_size=32"}), 1,
               "--image_size: is for classifiers");
  expect_error(convert(weights, "x.npz", {"--config=MODE_MASK=False"}), 1, "--config: needs --model");
  expect_error(convert(weights, "x.npz", {"--model=mask_rcnn", "--height=32"}), 1, "of ONNX models only");
  expect_error(convert(weights, "x.onnx", {"--model=lenet", "--dtype=f32"}), 1,
               "--dtype: ONNX models are written in f32");
}

TEST_F(Convert, ReportsErrors) {
  const std::string weights = torch_path("archive.pth");
  expect_error(convert(weights, "x.pth"), 1, "ends with .safetensors, .npz or .onnx, or --to");
  expect_error(convert(weights, "x", {"--to=h5"}), 1, "--to");
  expect_error(convert(weights, "x.onnx"), 1, "expected --model");
  expect_error(convert(weights, "x.npz", {"--names=timm"}), 1, "expected --model");
  expect_error(convert(weights, "x.npz", {"--model=no_such"}), 1, "no_such");
  expect_error(convert(weights, "x.npz", {"--names=tensorpack"}), 5, "does not fit the model");
  expect_error(convert("missing.pth", "x.npz"), 5, "missing.pth");
  write_file(path("page.pth"), "<!DOCTYPE html>\n<html><body>404</body></html>");
  expect_error(convert("page.pth", "x.npz"), 5, "an HTML page");
  expect_error(run_program("dtrain-convert", {weights}), 1, "expected two files, IN and OUT, found 1");
  EXPECT_FALSE(std::filesystem::exists(path("x.npz")));
  EXPECT_EQ(convert(weights, "x", {"--to=npz"}).code, 0);
  EXPECT_EQ(ArrayFile(path("x")).format(), ArrayFormat::npz);
}

}  // namespace
}  // namespace dtrain
