// Weights written by other programs (types, wrapper prefixes), and metadata of our own.
#include "dtrain/io/safetensors.h"
#include "dtrain/train/weights.h"
#include "tests/files.h"
#include "tests/testing.h"
#include "tests/train/checkpoint_fixture.h"

namespace dtrain {
namespace {

// File of tensors of any type, converted by `Element`.
template <class Element>
void write_tensors(const std::string& path, const std::string& dtype,
                   const std::vector<std::pair<std::string, std::vector<Element>>>& tensors) {
  std::string header, data;
  for (const auto& [name, values] : tensors) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element));
    header += concat(header.empty() ? "{" : ",", '"', name, R"(":{"dtype":")", dtype, R"(","shape":[)", values.size(),
                     R"(],"data_offsets":[)", begin, ",", data.size(), "]}");
  }
  header += "}";
  const uint64_t size = header.size();
  write_file(path, std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data);
}

// Two parameters of two elements each.
struct TwoParameters {
  TwoParameters() : context(make_cpu_context({.threads = 1})), store(*context) {
    for (const char* name : {"fc.weight", "model.bias"}) store.add(name, {2}, Init::constant(7));
    store.allocate(1);
  }
  std::vector<float> values(const std::string& name) const {
    for (const Parameter& one : store.parameters())
      if (one.name == name) return {one.value.span<float>().begin(), one.value.span<float>().end()};
    return {};
  }

  std::unique_ptr<Context> context;
  ParameterStore store;
};

TEST(OthersWeights, OtherFloatingTypesAreCast) {
  const TempDirectory folder;
  const std::string path = (folder / "w.safetensors").string();
  const auto load = [&](const std::string& dtype) {
    TwoParameters model;
    const WeightReport report = load_weights(model.store, path);
    EXPECT_TRUE(report.complete()) << report.summary();
    EXPECT_EQ(report.cast, (std::vector<std::string>{"fc.weight (" + dtype + ")", "model.bias (" + dtype + ")"}));
    EXPECT_EQ(report.notices(),
              std::vector<std::string>{"2 tensors cast to F32: fc.weight (" + dtype + "), model.bias (" + dtype + ")"});
    return model.values("fc.weight");
  };
  using Halves = std::vector<std::pair<std::string, std::vector<uint16_t>>>;
  const Halves halves = {{"fc.weight", {0x3c00, 0xc101}}, {"model.bias", {0x0001, 0}}};
  write_tensors(path, "F16", halves);
  EXPECT_EQ(load("F16"), (std::vector<float>{1, -2.501953125f}));
  write_tensors(path, "BF16", Halves{{"fc.weight", {0x3f80, 0xc020}}, {"model.bias", {0, 0}}});
  EXPECT_EQ(load("BF16"), (std::vector<float>{1, -2.5f}));
  write_tensors<double>(path, "F64", {{"fc.weight", {0.1, -3}}, {"model.bias", {0, 0}}});
  EXPECT_EQ(load("F64"), (std::vector<float>{0.1f, -3}));

  TwoParameters model;
  write_tensors<double>(path, "F64", {{"fc.weight", {1e300, 0}}, {"model.bias", {0, 0}}});
  expect_error([&] { (void)load_weights(model.store, path); }, Fault::numeric, "element 0 of fc.weight is not finite");
  write_tensors<int64_t>(path, "I64", {{"fc.weight", {1, 2}}, {"model.bias", {0, 0}}});
  expect_error([&] { (void)load_weights(model.store, path); }, Fault::data, "fc.weight: file I64 [2], model F32 [2]");
}

TEST(OthersWeights, PrefixesOfWrappersAreTakenAway) {
  const TempDirectory folder;
  const std::string path = (folder / "w.safetensors").string();
  for (const std::string prefix : {"module.", "_orig_mod.", "module._orig_mod.", "model.module."}) {
    SCOPED_TRACE(prefix);
    TwoParameters model;
    write_tensors<float>(path, "F32", {{prefix + "fc.weight", {1, 2}}, {prefix + "model.bias", {3, 4}}});
    const WeightReport report = load_weights(model.store, path);
    EXPECT_TRUE(report.complete()) << report.summary();
    EXPECT_EQ(model.values("model.bias"), (std::vector<float>{3, 4}));
    EXPECT_EQ(report.notices(), std::vector<std::string>{concat("2 names loaded without wrapper prefix: ", prefix,
                                                                "fc.weight, ", prefix, "model.bias")});
  }
  // The model's own name has precedence.
  TwoParameters model;
  write_tensors<float>(path, "F32", {{"module.fc.weight", {1, 2}}, {"fc.weight", {3, 4}}, {"model.bias", {5, 6}}});
  const WeightReport report = load_weights(model.store, path);
  EXPECT_EQ(model.values("fc.weight"), (std::vector<float>{3, 4}));
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"module.fc.weight"});
  EXPECT_TRUE(report.unwrapped.empty());
}

TEST(OthersWeights, BuffersAloneAreNoWeights) {
  const TempDirectory folder;
  const std::string path = (folder / "w.safetensors").string();
  SmallModel model;
  write_tensors<float>(path, "F32", {{"bn.running_mean", {1, 2, 3, 4, 5}}});
  expect_error([&] { (void)load_weights(model.store, path); }, Fault::data,
               "does not fit the model: none of its parameters is in the file: 1 tensors loaded, 5 missing");
}

TEST(OthersWeights, ARecordTravelsWithTheFile) {
  const TempDirectory folder;
  const std::string path = (folder / "w.safetensors").string();
  SmallModel model;
  const WeightsRecord record = {{"model", "small, padding same"}, {"class names", R"(["tench","goldfish"])"}};
  save_weights(model.store, path, 3, record);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at("dtrain.model"), "small, padding same");
  EXPECT_EQ(record_in(file.metadata()), record);
  EXPECT_TRUE(load_weights(model.store, path).complete());
}

}  // namespace
}  // namespace dtrain
