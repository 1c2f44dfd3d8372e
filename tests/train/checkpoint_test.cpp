// Checkpoints: bit-exact round trips, retention, rejection and skipping.
#include "dtrain/train/checkpoint.h"

#include "dtrain/train/weights.h"
#include "tests/files.h"
#include "tests/testing.h"
#include "tests/train/checkpoint_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  Checkpointer open(SmallModel& model, bool asynchronous = false, int keep = 5, FileSystem& files = system_files()) {
    return Checkpointer(
        model.store, {.train_dir = directory.path(), .keep = keep, .asynchronous = asynchronous},
        [this](const std::string& warning) { warnings.push_back(warning); }, files);
  }

  std::string step_dir(uint64_t step) const { return directory / ("checkpoints/step-" + std::to_string(step)); }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory / "checkpoints"))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  // Saves steps 1 and 2.
  void save_two() {
    SmallModel model;
    auto checkpointer = open(model);
    save_step(checkpointer, model, 1);
    save_step(checkpointer, model, 2);
  }

  TempDirectory directory;
  std::vector<std::string> warnings;
};

std::string checkpoint_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::checkpoint) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST_F(CheckpointTest, RestoresBitForBit) {
  for (bool asynchronous : {false, true}) {
    const uint64_t step = asynchronous ? 7 : 5;
    {
      SmallModel model;
      auto checkpointer = open(model, asynchronous);
      model.advance_to(step);
      checkpointer.save(state_at(step));
      model.advance_to(99);  // the snapshot must not see this
      const auto report = checkpointer.wait();
      ASSERT_TRUE(report);
      EXPECT_EQ(report->step, step);
      EXPECT_GT(report->bytes, 100u);
    }
    SmallModel model;
    auto checkpointer = open(model);
    const uint64_t version = model.store.version();
    const auto report = checkpointer.restore_latest(state_at(0));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->path, step_dir(step));
    EXPECT_EQ(report->state.step, step);
    EXPECT_EQ(report->state.cursor, 16 * step);
    EXPECT_EQ(report->state.device, state_at(step).device);
    EXPECT_EQ(report->state.identity, state_at(0).identity);
    EXPECT_TRUE(report->notices.empty());
    EXPECT_EQ(model.contents(), contents_at(step));
    EXPECT_NE(model.store.version(), version);
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CheckpointTest, EmptyDirectoryHasNone) {
  SmallModel model;
  auto checkpointer = open(model);
  EXPECT_FALSE(checkpointer.restore_latest(state_at(0)));
  EXPECT_FALSE(checkpointer.latest());
  EXPECT_FALSE(checkpointer.wait());
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  SmallModel model;
  auto checkpointer = open(model, false, 1);  // at least two are kept
  for (uint64_t step : {2, 9, 10, 11}) save_step(checkpointer, model, step);
  EXPECT_EQ(entries(), (std::vector<std::string>{"step-10", "step-11"}));
  fs::remove(step_dir(11) + "/state.json");
  EXPECT_EQ(checkpointer.latest(), step_dir(10));
  save_step(checkpointer, model, 12);  // the damaged one does not count
  EXPECT_EQ(entries(), (std::vector<std::string>{"step-10", "step-11", "step-12"}));
}

TEST_F(CheckpointTest, OptimiserStateThatWasNeverUsedIsZeroAgain) {
  {
    SmallModel model;
    auto checkpointer = open(model);
    save_step(checkpointer, model, 1);
  }
  SmallModel model;
  model.store.optimizer_state(1).span<float>()[0] = 5;
  auto checkpointer = open(model);
  ASSERT_TRUE(checkpointer.restore_latest(state_at(0)));
  EXPECT_EQ(model.store.optimizer_state(1).span<float>()[0], 0);
}

TEST_F(CheckpointTest, AnAverageIsSavedAsWeightsAndRestored) {
  const auto open_with = [&](SmallModel& model, const Tensor& average) {
    return Checkpointer(model.store, {.train_dir = directory.path(), .average = average},
                        [this](const std::string& warning) { warnings.push_back(warning); });
  };
  // Padding is zero, as in the values.
  const auto averaged = [](SmallModel& model) {
    const Tensor average = model.context->zeros(model.store.values().shape());
    for (const Parameter& parameter : model.store.parameters())
      for (int64_t i = 0; i < parameter.shape.count(); ++i)
        average.span<float>()[static_cast<size_t>(parameter.offset + i)] = 0.1f * static_cast<float>(i + 1);
    return average;
  };
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.span<float>(), b.span<float>());
  };
  {
    SmallModel model;
    auto checkpointer = open_with(model, averaged(model));
    save_step(checkpointer, model, 1);
  }
  SmallModel model;
  const Tensor expected = averaged(model);
  const Tensor restored = model.context->zeros(model.store.values().shape());
  {
    auto checkpointer = open_with(model, restored);
    ASSERT_TRUE(checkpointer.restore_latest(state_at(0)));
    EXPECT_TRUE(same(restored, expected));
    EXPECT_EQ(model.contents(), contents_at(1));
    save_step(checkpointer, model, 2);
  }
  // A run without an average continues without; the next one restarts it from the parameters.
  {
    auto checkpointer = open(model);
    EXPECT_TRUE(checkpointer.restore_latest(state_at(0))->notices.empty());
    save_step(checkpointer, model, 3);
  }
  EXPECT_FALSE(fs::exists(step_dir(3) + "/averaged.safetensors"));
  {
    auto checkpointer = open_with(model, restored);
    ASSERT_TRUE(checkpointer.restore_latest(state_at(0)));
    EXPECT_TRUE(same(restored, model.store.values()));
  }
  EXPECT_TRUE(load_weights(model.store, step_dir(2) + "/averaged.safetensors").complete());
  EXPECT_TRUE(same(model.store.values(), expected));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CheckpointTest, AnotherRunIsRefusedWithTheDifference) {
  save_two();
  SmallModel model;
  auto checkpointer = open(model);
  TrainState expected = state_at(0);
  expected.identity = {{"model", "large"}, {"classes", "3"}, {"optimizer", "lars"}};
  const std::string message = checkpoint_error([&] { checkpointer.restore_latest(expected); });
  EXPECT_TRUE(contains(message, "model: checkpoint small, this run large")) << message;
  EXPECT_TRUE(contains(message, "optimizer: checkpoint (not set), this run lars")) << message;
  EXPECT_FALSE(contains(message, "classes")) << message;
  // The first differing line of a multi-line value, such as a list of files.
  expected.identity["classes"] = "3\n4";
  const std::string lines = checkpoint_error([&] { checkpointer.restore_latest(expected); });
  EXPECT_TRUE(contains(lines, "classes: checkpoint nothing, this run 4")) << lines;
}

TEST_F(CheckpointTest, AFolderThatIsNoCheckpointIsNamed) {
  SmallModel model;
  auto checkpointer = open(model);
  const std::string nowhere = directory / "nowhere";
  const std::string message = checkpoint_error([&] { checkpointer.restore(nowhere, state_at(0)); });
  EXPECT_TRUE(contains(message, nowhere + " is not the folder of a checkpoint")) << message;
}

TEST_F(CheckpointTest, AnotherShapeIsRefusedByName) {
  save_two();
  SmallModel model(4);
  auto checkpointer = open(model);
  const std::string message = checkpoint_error([&] { checkpointer.restore_latest(state_at(0)); });
  EXPECT_TRUE(contains(message, "fc.weight: file F32 [3, 5], model F32 [4, 5]")) << message;
}

TEST_F(CheckpointTest, ChangedSettingsAndExtraFilesAreAnnounced) {
  save_two();
  write_file(step_dir(2) + "/notes.txt", "mine");
  SmallModel model;
  auto checkpointer = open(model);
  TrainState expected = state_at(0);
  expected.settings["threads"] = "2";
  const auto report = checkpointer.restore_latest(expected);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->notices.size(), 2u);
  EXPECT_TRUE(contains(report->notices[0], "notes.txt: ignored"));
  EXPECT_EQ(report->notices[1], "threads: checkpoint 1, this run 2");
}

TEST_F(CheckpointTest, RestoresFromAGivenPath) {
  save_two();
  SmallModel model;
  auto checkpointer = open(model);
  EXPECT_EQ(checkpointer.restore(step_dir(1), state_at(0)).state.step, 1u);
  EXPECT_EQ(model.contents(), contents_at(1));
  checkpoint_error([&] { checkpointer.restore(directory / "none", state_at(0)); });

  // The run's future differs from here on: the old step 2 must not become the newest again.
  save_step(checkpointer, model, 1);
  EXPECT_TRUE(warnings.empty());
  model.advance_to(77);
  checkpointer.save(state_at(2));
  ASSERT_TRUE(checkpointer.wait());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(contains(warnings[0], step_dir(2) + " belongs to an abandoned run: renamed to ")) << warnings[0];
  checkpointer.restore(*checkpointer.latest(), state_at(0));
  EXPECT_EQ(model.contents(), contents_at(77));
  ASSERT_EQ(entries().size(), 3u);
}

TEST_F(CheckpointTest, SecondWriterIsRefused) {
  SmallModel model;
  const auto checkpointer = open(model);
  try {
    open(model);
    ADD_FAILURE() << "two writers";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::config);
    EXPECT_TRUE(contains(error.what(), "locked by process " + std::to_string(::getpid()))) << error.what();
  }
}

TEST_F(CheckpointTest, AStoreWithoutValuesIsRefused) {
  save_two();
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  store.add("w", {2}, Init::constant(1));
  Checkpointer checkpointer(store, {.train_dir = directory.path(), .asynchronous = false}, {});
  for (const std::function<void()>& action : std::vector<std::function<void()>>{
           [&] { checkpointer.save(state_at(3)); }, [&] { checkpointer.restore_latest(state_at(0)); },
           [&] { checkpointer.restore(step_dir(1), state_at(0)); }})
    expect_error(action, Fault::config, "the store holds no values before ParameterStore::allocate()");
  EXPECT_EQ(entries(), (std::vector<std::string>{"step-1", "step-2"}));
}

TEST_F(CheckpointTest, OptionsWithoutSenseAreRefused) {
  SmallModel model;
  expect_error([&] { Checkpointer(model.store, {}, ignore); }, Fault::config, "train_dir is empty");
  EXPECT_FALSE(fs::exists("/checkpoints") || fs::exists("/lock"));
  expect_error([&] { Checkpointer(model.store, {.train_dir = directory.path(), .max_failures = 0}, ignore); },
               Fault::config, "max_failures is 0");
}

TEST_F(CheckpointTest, WithoutAnyoneToWarnAFailedSaveIsSilent) {
  for (const bool asynchronous : {false, true}) {
    SmallModel model;
    Checkpointer checkpointer(model.store, {.train_dir = directory.path(), .asynchronous = asynchronous}, {});
    fs::remove_all(directory / "checkpoints");
    checkpointer.save(state_at(1));
    EXPECT_FALSE(checkpointer.wait());
    fs::create_directory(directory / "checkpoints");
    checkpointer.save(state_at(2));
    EXPECT_TRUE(checkpointer.wait());
    fs::remove_all(directory / "checkpoints");
  }
}

TEST_F(CheckpointTest, WhatAWarningThrowsInTheBackgroundReachesTheCaller) {
  SmallModel model;
  Checkpointer checkpointer(model.store, {.train_dir = directory.path()}, [](const std::string& warning) {
    throw Error(Fault::resource, "cannot print: " + warning);
  });
  fs::remove_all(directory / "checkpoints");
  checkpointer.save(state_at(1));
  expect_error([&] { checkpointer.wait(); }, Fault::resource, "cannot print: checkpoint of step 1 failed");
  EXPECT_FALSE(checkpointer.wait());
}

// Single-bit flips at sampled bytes of each file: never a wrong load, always the previous checkpoint.
TEST_F(CheckpointTest, AnyFlippedBitIsNoticed) {
  save_two();
  SmallModel model;
  auto checkpointer = open(model);
  for (const char* name : {"model.safetensors", "state.safetensors", "state.json", "MANIFEST.json"}) {
    const std::string path = step_dir(2) + "/" + name, whole = read_file(path);
    for (size_t i = 0; i < whole.size(); i += 1 + whole.size() / 97) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
      write_file(path, damaged);
      const auto report = checkpointer.restore_latest(state_at(0));
      ASSERT_TRUE(report);
      ASSERT_EQ(report->state.step, 1u) << name << " byte " << i;
      ASSERT_EQ(report->notices.size(), 1u);
      ASSERT_TRUE(contains(report->notices[0], path)) << report->notices[0];
    }
    write_file(path, whole);
  }
  EXPECT_EQ(checkpointer.restore_latest(state_at(0))->state.step, 2u);
}

TEST_F(CheckpointTest, TruncatedOrMissingFilesFallBackAndAllDamagedIsAnError) {
  save_two();
  SmallModel model;
  auto checkpointer = open(model);
  for (const char* name : {"model.safetensors", "state.safetensors", "state.json", "MANIFEST.json"}) {
    const std::string path = step_dir(2) + "/" + name, whole = read_file(path);
    for (size_t size : {size_t{0}, whole.size() / 2, whole.size() - 1}) {
      write_file(path, whole.substr(0, size));
      EXPECT_EQ(checkpointer.restore_latest(state_at(0))->state.step, 1u);
      EXPECT_EQ(model.contents(), contents_at(1));
      EXPECT_EQ(checkpointer.latest(), step_dir(1));
    }
    fs::remove(path);
    EXPECT_EQ(checkpointer.restore_latest(state_at(0))->state.step, 1u);
    write_file(path, whole);
  }
  fs::remove(step_dir(1) + "/MANIFEST.json");
  write_file(step_dir(2) + "/state.json", "{}");
  const std::string message = checkpoint_error([&] { checkpointer.restore_latest(state_at(0)); });
  EXPECT_TRUE(contains(message, "step-1/MANIFEST.json")) << message;
  EXPECT_TRUE(contains(message, "step-2/state.json: damaged")) << message;
}

TEST_F(CheckpointTest, LeftoversOfAKilledRunAreRemoved) {
  save_two();
  const std::string leftover = step_dir(3) + ".tmp-0123456789abcdef";
  fs::create_directory(leftover);
  write_file(leftover + "/model.safetensors", "half");
  SmallModel model;
  auto checkpointer = open(model);
  EXPECT_EQ(entries(), (std::vector<std::string>{"step-1", "step-2"}));
  ASSERT_EQ(warnings.size(), 1u);
}

}  // namespace
}  // namespace dtrain
