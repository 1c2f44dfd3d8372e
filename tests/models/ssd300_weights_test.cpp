// Loading of classifier weights into the backbone of SSD300.
#include "dtrain/models/ssd300_weights.h"

#include <filesystem>
#include <map>

#include "dtrain/train/checkpoint.h"
#include "dtrain/train/weights.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

const SsdOptions kSmallSsd{.classes = 3, .blocks = {1, 1, 1}};

using NamedValues = std::map<std::string, std::vector<float>>;

NamedValues values_in(const ParameterStore& store) {
  NamedValues values;
  for (const Parameter& one : store.parameters()) values[one.name] = values_of<float>(store.context(), one.value);
  for (const Buffer& one : store.buffers()) values[one.name] = values_of<float>(store.context(), one.value);
  return values;
}

// Classifier; by default its first stages match the backbone of kSmallSsd.
struct SmallClassifier {
  explicit SmallClassifier(const ResNetOptions& options = {.blocks = {1, 1, 1, 1}}) {
    Trace trace(32);
    const ResNet network(store, trace, options, /*classes=*/5);
    store.allocate(7);
    for (const Buffer& one : store.buffers())
      context->copy(to_device(*context, random_array(one.shape, 8, 1, 2)), one.value);
  }

  std::unique_ptr<Context> context = make_cpu_context();
  ParameterStore store{*context};
};

// Parameters of a small SSD before and after loading the backbone from `path`.
struct Loaded {
  Loaded(Context& context, const std::string& path) {
    ParameterStore store(context);
    const Ssd300 model(store, kSmallSsd);
    store.allocate(2);
    before = values_in(store);
    file = load_ssd_backbone(store, kSmallSsd, path);
    after = values_in(store);
  }

  NamedValues before, after;
  std::string file;
};

TEST(Ssd300Weights, LoadsBackboneFromClassifier) {
  const SmallClassifier classifier;
  const TempDirectory folder;
  const std::string path = folder.path() / "resnet.safetensors";
  save_weights(classifier.store, path);
  for (const auto& context : devices()) {
    const Loaded loaded(*context, path);
    EXPECT_EQ(loaded.file, path);
    NamedValues expected = loaded.before;
    size_t taken = 0;
    for (const auto& [name, values] : values_in(classifier.store))
      if (expected.contains(name)) expected[name] = values, ++taken;
    EXPECT_EQ(taken, 9u * 5);  // stem, six block convolutions and two projections, each with batch norm
    EXPECT_EQ(loaded.after, expected);
  }
}

TEST(Ssd300Weights, FindsBackboneInTrainDir) {
  SmallClassifier classifier;
  const TempDirectory folder;
  const std::string train_dir = folder.path() / "run", newest = train_dir + "/checkpoints/step-7";
  {
    Checkpointer checkpointer(classifier.store, {.train_dir = train_dir, .asynchronous = false}, {});
    checkpointer.save({.step = 5});
    checkpointer.save({.step = 7});
  }
  EXPECT_EQ(Loaded(*classifier.context, train_dir).file, newest + "/model.safetensors");
  EXPECT_EQ(Loaded(*classifier.context, newest).file, newest + "/model.safetensors");
  std::filesystem::remove(newest + "/state.json");
  EXPECT_EQ(Loaded(*classifier.context, train_dir).file, train_dir + "/checkpoints/step-5/model.safetensors");
  expect_error([&] { Loaded(*classifier.context, folder.path()); }, Fault::data,
               "neither a checkpoint nor a train_dir");
}

TEST(Ssd300Weights, RejectsOtherWeightsByName) {
  const TempDirectory folder;
  const std::string path = folder.path() / "w.safetensors";
  const auto refuse = [&](const ResNetOptions& options, const std::string& words) {
    const SmallClassifier other(options);
    save_weights(other.store, path);
    expect_error([&] { Loaded(*other.context, path); }, Fault::data, words);
  };
  refuse({.blocks = {1, 1}}, "missing: layer3.0.conv1.weight");
  refuse({.blocks = {1, 2, 1, 1}}, "unexpected: layer2.1");
  refuse({.blocks = {1, 1, 1, 1}, .bottleneck = true},
         "layer1.0.conv1.weight: file [64, 64, 1, 1], model [64, 64, 3, 3]");
  refuse({.blocks = {1, 1, 1, 1}, .project_first = true}, "unexpected: layer1.0.downsample");
  const auto context = make_cpu_context();
  expect_error([&] { Loaded(*context, folder.path() / "absent"); }, Fault::data, "absent");
  ParameterStore store(*context);
  expect_error([&] { load_ssd_backbone(store, kSmallSsd, path); }, Fault::config, "before ParameterStore::allocate()");
  store.add("w", {1}, Init::constant(0));
  store.allocate(1);
  save_weights(SmallClassifier().store, path);
  expect_error([&] { load_ssd_backbone(store, kSmallSsd, path); }, Fault::config, "the store has no conv1.weight");
}

}  // namespace
}  // namespace dtrain::models
