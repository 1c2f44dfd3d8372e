// Runs dtrain-cnn-benchmarks on drawn images and on synthetic ones.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {

using Arguments = std::vector<std::string>;

inline constexpr char kProgram[] = "dtrain-cnn-benchmarks";

inline ProgramResult train(const Arguments& arguments) { return run_program(kProgram, arguments); }

inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Drawn images, made once: 40 for training in two shards, 10 for validation, 3 classes.
class CnnBenchmarks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TempDirectory>();
    const ProgramResult made =
        run_program("dtrain-data", {"synthesize", "--output", data(), "--classes=3", "--image_size=24", "--train=40",
                                    "--validation=10", "--shards=2", "--seed=1"});
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string data() { return (*directory_ / "data").string(); }
  std::string path(const std::string& name) const { return (scratch_ / name).string(); }

  static Arguments synthetic() {
    return {"--model=resnet20", "--data_name=cifar10", "--image_size=16", "--batch_size=4"};
  }
  // 24 steps, a checkpoint after each fourth; 40 images are 10 steps, so that it ends in the third epoch.
  Arguments real(const std::string& train_dir) const {
    return {"--model=resnet20",
            "--data_name=imagenet",
            "--image_size=16",
            "--num_classes=4",
            "--batch_size=4",
            "--data_dir=" + data(),
            "--num_batches=22",
            "--num_warmup_batches=2",
            "--display_every=1",
            "--init_learning_rate=.1",
            "--optimizer=momentum",
            "--save_model_steps=4",
            "--train_dir=" + path(train_dir)};
  }
  std::string checkpoint(const std::string& train_dir, int step) const {
    return path(train_dir) + "/checkpoints/step-" + std::to_string(step);
  }
  void expect_equal_checkpoints(const std::string& a, const std::string& b) const {
    for (const char* file : {"/model.safetensors", "/state.safetensors", "/state.json"})
      EXPECT_TRUE(read_file(checkpoint(a, 24) + file) == read_file(checkpoint(b, 24) + file)) << file;
  }

 private:
  static inline std::unique_ptr<TempDirectory> directory_;
  TempDirectory scratch_;
};

}  // namespace dtrain
