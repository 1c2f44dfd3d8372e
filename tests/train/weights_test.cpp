// Weights with torchvision's names: exact round trips, transposition against numpy, mismatches.
#include "dtrain/train/weights.h"

#include <cstdlib>

#include "dtrain/io/safetensors.h"
#include "dtrain/layers.h"
#include "tests/files.h"
#include "tests/testing.h"
#include "tests/train/checkpoint_fixture.h"

namespace dtrain {
namespace {

bool same_weights(SmallModel& a, SmallModel& b) {
  for (const auto& [x, y] :
       {std::pair(a.store.values(), b.store.values()), std::pair(a.store.buffer_values(), b.store.buffer_values())})
    if (!std::equal(x.span<float>().begin(), x.span<float>().end(), y.span<float>().begin())) return false;
  return true;
}

TEST(Weights, RoundTripIsExact) {
  const TempDirectory directory;
  SmallModel saved, loaded;
  saved.advance_to(3);
  save_weights(saved.store, directory / "w.safetensors", 12);
  const uint64_t version = loaded.store.version();
  const WeightReport report = load_weights(loaded.store, directory / "w.safetensors");
  EXPECT_TRUE(report.complete()) << report.summary();
  EXPECT_EQ(report.loaded.size(), 6u);
  EXPECT_TRUE(same_weights(saved, loaded));
  EXPECT_NE(loaded.store.version(), version);
}

TEST(Weights, AreSavedWhereALinkLeads) {
  const TempDirectory directory;
  SmallModel saved, loaded;
  saved.advance_to(3);
  std::filesystem::create_symlink("target.safetensors", directory / "w.safetensors");
  save_weights(saved.store, directory / "w.safetensors");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "w.safetensors"));
  EXPECT_TRUE(load_weights(loaded.store, directory / "target.safetensors").complete());
}

TEST(Weights, FilterIsTransposedToTorchOrder) {
  const TempDirectory directory;
  SmallModel model;
  model.advance_to(3);
  save_weights(model.store, directory / "w.safetensors", 12);
  const SafetensorsFile file(directory / "w.safetensors");
  const SafetensorsEntry* conv = file.find("conv.weight");
  ASSERT_TRUE(conv);
  EXPECT_EQ(conv->shape, (Shape{5, 3, 3, 2}));
  std::vector<float> oihw(90);
  file.read(*conv, oihw.data());
  const float* krsc = model.store.find("conv.weight")->value.data<float>();
  for (int o = 0; o < 5; ++o)
    for (int i = 0; i < 3; ++i)
      for (int h = 0; h < 3; ++h)
        for (int w = 0; w < 2; ++w) ASSERT_EQ(oihw[((o * 3 + i) * 3 + h) * 2 + w], krsc[((o * 3 + h) * 2 + w) * 3 + i]);
  int64_t batches = 0;
  ASSERT_TRUE(file.find("bn.num_batches_tracked"));
  file.read(*file.find("bn.num_batches_tracked"), &batches);
  EXPECT_EQ(batches, 12);
}

TEST(Weights, ReportNamesWhatDoesNotFit) {
  const TempDirectory directory;
  SmallModel saved, other(4);
  saved.store.find("bn.bias")->value.span<float>()[0] = 42;
  save_weights(saved.store, directory / "w.safetensors");
  const float before = other.store.find("fc.weight")->value.span<float>()[0];
  WeightReport report = load_weights(other.store, directory / "w.safetensors");
  EXPECT_EQ(report.loaded.size(), 5u);
  ASSERT_EQ(report.mismatched.size(), 1u);
  EXPECT_EQ(report.mismatched[0], "fc.weight: file F32 [3, 5], model F32 [4, 5]");
  EXPECT_EQ(other.store.find("fc.weight")->value.span<float>()[0], before);
  EXPECT_EQ(other.store.find("bn.bias")->value.span<float>()[0], 42);

  auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  store.add("bn.bias", {5}, Init::constant(0));
  store.add("bn.scale", {5}, Init::constant(0));
  store.allocate(1);
  report = load_weights(store, directory / "w.safetensors");
  EXPECT_EQ(report.loaded, std::vector<std::string>{"bn.bias"});
  EXPECT_EQ(report.missing, std::vector<std::string>{"bn.scale"});
  EXPECT_EQ(report.unexpected.size(), 5u);
  EXPECT_EQ(report.summary().substr(0, 78),
            "1 tensors loaded, 1 missing, 5 unexpected, 0 of another type or shape; missing");
  write_file(directory / "w.safetensors", "not a file of weights");
  expect_error([&] { (void)load_weights(store, directory / "w.safetensors"); }, Fault::data, "not a safetensors file");
}

TEST(Weights, RefusesAStoreWithoutValues) {
  const TempDirectory directory;
  const std::string path = (directory / "w.safetensors").string();
  SmallModel saved;
  save_weights(saved.store, path);
  ParameterStore store(*saved.context);
  store.add("bn.bias", {5}, Init::constant(0));
  expect_error([&] { (void)load_weights(store, path); }, Fault::config,
               "load_weights: the store holds no values before");
  expect_error([&] { save_weights(store, directory / "new.safetensors"); }, Fault::config,
               "save_weights: the store holds no values before");
  EXPECT_FALSE(std::filesystem::exists(directory / "new.safetensors"));
}

TEST(Weights, RefusesAFileOfWhichNothingFits) {
  const TempDirectory directory;
  const std::string path = (directory / "w.safetensors").string();
  SmallModel saved;
  save_weights(saved.store, path);
  ParameterStore other(*saved.context), none(*saved.context);
  other.add("head.weight", {5}, Init::constant(7));
  other.add("bn.bias", {4}, Init::constant(7));
  other.allocate(1);
  const std::string expected =
      path +
      ": does not fit the model: 0 tensors loaded, 1 missing, 5 unexpected, 1 of another type or shape; missing: "
      "head.weight; unexpected: conv.weight, ";
  expect_error([&] { (void)load_weights(other, path, Fault::checkpoint); }, Fault::checkpoint, expected);
  expect_error([&] { (void)load_weights(other, path); }, Fault::data,
               "mismatched: bn.bias: file F32 [5], model F32 [4]");
  EXPECT_EQ(other.find("bn.bias")->value.span<float>()[0], 7);
  none.allocate(1);  // expects nothing
  EXPECT_TRUE(load_weights(none, path).loaded.empty());
}

std::vector<float> read(const std::filesystem::path& path, const std::string& name) {
  const SafetensorsFile file(path.string());
  const SafetensorsEntry* entry = file.find(name);
  DT_CHECK(entry, "no ", name);
  std::vector<float> values(entry->bytes / sizeof(float));
  file.read(*entry, values.data());
  return values;
}

// torchvision uses [in, out, height, width], filters are not mirrored; tests/parity compares results.
TEST(Weights, TransposedFiltersAreSavedInTorchOrder) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const ConvTranspose2d layer(store, "mask_fcn", 4, 5, {2, 3}, {});
  store.allocate(1);
  const TempDirectory folder;
  const std::string path = (folder / "weights.safetensors").string();
  save_weights(store, path);
  EXPECT_EQ(SafetensorsFile(path).find("mask_fcn.weight")->shape, (Shape{4, 5, 2, 3}));
  EXPECT_EQ(SafetensorsFile(path).find("mask_fcn.bias")->shape, Shape{5});
  const std::vector<float> torch = read(path, "mask_fcn.weight");
  const float* const ours = layer.weight->value.data<float>();
  for (size_t in = 0; in < 4; ++in)
    for (size_t out = 0; out < 5; ++out)
      for (size_t tap = 0; tap < 6; ++tap) ASSERT_EQ(torch[(in * 5 + out) * 6 + tap], ours[(in * 6 + tap) * 5 + out]);
  const std::vector<float> before(ours, ours + 120);
  context->fill_zero(layer.weight->value);
  EXPECT_TRUE(load_weights(store, path).complete());
  EXPECT_EQ(values_of<float>(*context, layer.weight->value), before);
}

TEST(Weights, LayoutsOfTorchvision) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Parameter& filters = store.add("filters", {2, 1, 2, 3}, Init::constant(0), {.layout = Layout::krsc});
  const Parameter& flat = store.add("flat", {2, 6}, Init::constant(0), {.layout = Layout::flat, .channels = 3});
  store.allocate(0);
  // k r s c, counted through: [[0 1 2], [3 4 5]] are the two pixels of filter 0.
  const std::vector<float> ours = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::vector<float> torch = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
  context->upload(ours.data(), filters.value);
  context->upload(ours.data(), flat.value);
  const TempDirectory folder;
  const std::string path = (folder / "weights.safetensors").string();
  save_weights(store, path);
  EXPECT_EQ(read(path, "filters"), torch);
  EXPECT_EQ(read(path, "flat"), torch);
  EXPECT_EQ(torch_shape(filters), (Shape{2, 3, 1, 2}));
  EXPECT_EQ(torch_shape(flat), (Shape{2, 6}));

  context->fill_zero(store.values());
  EXPECT_TRUE(load_weights(store, path).complete());
  EXPECT_EQ(values_of<float>(*context, filters.value), ours);
  EXPECT_EQ(values_of<float>(*context, flat.value), ours);
}

// Reads and writes safetensors in Python with torch modules, independent of this engine.
constexpr const char* kTorchSide = R"(
import json, struct, sys
import numpy, torch
command, path = sys.argv[1:]
torch.manual_seed(1)
model = torch.nn.ModuleDict({"conv": torch.nn.Conv2d(3, 5, (3, 2), bias=False), "bn": torch.nn.BatchNorm2d(5),
                             "fc": torch.nn.Linear(5, 3, bias=False)})
model["bn"].running_mean.copy_(torch.arange(5) / 7)
model["bn"].num_batches_tracked.fill_(3)
names = {"torch.float32": "F32", "torch.int64": "I64"}
types = {"F32": numpy.float32, "I64": numpy.int64}
if command == "write":
    header, data = {}, b""
    for name, tensor in model.state_dict().items():
        begin, data = len(data), data + tensor.numpy().tobytes()
        header[name] = {"dtype": names[str(tensor.dtype)], "shape": list(tensor.shape),
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
else:
    content = open(path, "rb").read()
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + size]), content[8 + size:]
    header.pop("__metadata__")
    state = {name: torch.from_numpy(numpy.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]])
                                    .reshape(t["shape"]).copy()) for name, t in header.items()}
    expected = model.state_dict()
    print(model.load_state_dict(state))
    for name in expected:
        assert torch.equal(state[name], expected[name]), name
)";

TEST(Weights, ExchangeWithTorch) {
  const std::string python = "/usr/bin/python3";
  if (std::system(
          (python + " -c 'from importlib.util import find_spec as f; exit(not (f(\"torch\") and f(\"numpy\")))'")
              .c_str()) != 0)
    GTEST_SKIP() << "SKIPPED: python3 with torch and numpy";
  const TempDirectory directory;
  write_file(directory / "torch_side.py", kTorchSide);
  const auto torch_side = [&](const std::string& command, const std::string& path) {
    return std::system((python + " " + (directory / "torch_side.py").string() + " " + command + " " + path).c_str());
  };
  const std::string theirs = directory / "theirs.safetensors", ours = directory / "ours.safetensors";
  ASSERT_EQ(torch_side("write", theirs), 0);
  SmallModel model;
  const WeightReport report = load_weights(model.store, theirs);
  EXPECT_TRUE(report.complete()) << report.summary();
  save_weights(model.store, ours, 3);
  EXPECT_EQ(torch_side("compare", ours), 0);
}

}  // namespace
}  // namespace dtrain
