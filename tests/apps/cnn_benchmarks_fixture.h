// Runs dtrain-cnn-benchmarks on generated images and on synthetic batches.
#pragma once

#include <csignal>
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

// Generated images, created once: 40 for training in two shards, 10 for validation, 3 classes.
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
  // 24 steps, with a checkpoint every fourth; 40 images are 10 steps, so that it ends in the third epoch.
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
  // A run of real(train_dir) and `more`, stopped by SIGSTOP after printing `text` and before its last steps. On a busy
  // machine a run may end before the test sees the text; then it is restarted.
  std::unique_ptr<Program> paused(const std::string& train_dir, const std::string& text,
                                  const Arguments& more = {}) const {
    std::unique_ptr<Program> run;
    for (int attempt = 0; attempt < 20; ++attempt) {
      run.reset();
      std::filesystem::remove_all(path(train_dir));
      run = std::make_unique<Program>(kProgram, real(train_dir) + more);
      EXPECT_TRUE(run->wait_for(text)) << run->output();
      run->signal(SIGSTOP);
      if (!contains(run->output(), "\n18\timages/sec")) return run;
    }
    ADD_FAILURE() << "no run was stopped before its last steps";
    return run;
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
  TempDirectory scratch_{memory_directory()};  // on a slow disk, due saves are skipped
};

}  // namespace dtrain
