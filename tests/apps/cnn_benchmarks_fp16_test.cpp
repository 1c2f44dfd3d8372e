// fp16 training on a GPU: dynamic loss scale in the metrics file, in checkpoints and after a restart.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

class Fp16 : public CnnBenchmarks {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
  }
  // The first loss scale is so large that the first gradients overflow.
  Arguments lenet(const std::string& train_dir, int steps) const {
    return {"--model=lenet",
            "--device=gpu",
            "--use_fp16",
            "--fp16_enable_auto_loss_scale",
            "--fp16_loss_scale=1048576",
            "--fp16_inc_loss_scale_every_n=3",
            "--image_size=28",
            "--num_classes=10",
            "--batch_size=4",
            "--num_warmup_batches=0",
            "--num_batches=" + std::to_string(steps),
            "--display_every=1",
            "--init_learning_rate=2e-6",
            "--train_dir=" + path(train_dir),
            "--metrics_file=" + path(train_dir + ".json")};
  }
};

TEST_F(Fp16, LossScaleMovesAndContinuesFromACheckpoint) {
  // With 16-bit weight gradients, the initial loss scale is ten halvings above a usable one.
  constexpr int kSteps = 15;
  const ProgramResult whole = train(lenet("whole", kSteps));
  ASSERT_EQ(whole.code, 0) << whole.err;
  for (const int steps : {kSteps / 2, kSteps}) {
    const ProgramResult part = train(lenet("parts", steps));
    ASSERT_EQ(part.code, 0) << part.err;
  }
  for (const char* file : {"/model.safetensors", "/state.safetensors", "/state.json"})
    EXPECT_TRUE(read_file(checkpoint("whole", kSteps) + file) == read_file(checkpoint("parts", kSteps) + file)) << file;

  // Recomputes the scale from the reported updates: each halved it or was one of three consecutive finite steps.
  double scale = 1048576;
  int good = 0, skipped = 0, lines = 0;
  std::istringstream metrics(read_file(path("parts.json")));
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (!row.contains("loss")) continue;  // a checkpoint
    ++lines;
    if (row["skipped_updates"] > skipped) {
      ++skipped;
      scale /= 2;
      good = 0;
    } else if (++good == 3) {
      scale *= 2;
      good = 0;
    }
    EXPECT_EQ(row["loss_scale"], scale) << line;
    EXPECT_EQ(row["skipped_updates"], skipped) << line;
  }
  EXPECT_EQ(lines, kSteps);
  EXPECT_GE(skipped, 1);
  EXPECT_LT(skipped, kSteps);
  EXPECT_TRUE(contains(whole.err, std::to_string(skipped) + " updates were skipped to lower the loss scale"))
      << whole.err;
  const nlohmann::json state = nlohmann::json::parse(read_file(checkpoint("parts", kSteps) + "/state.json"));
  EXPECT_EQ(state["loss_scale"]["value"], scale);
  EXPECT_EQ(state["loss_scale"]["skipped"], skipped);
}

TEST_F(Fp16, StaticScaleThatOverflowsEndsTheRun) {
  Arguments arguments = lenet("static", 3);
  std::erase(arguments, "--fp16_enable_auto_loss_scale");
  const ProgramResult result = train(arguments);
  EXPECT_EQ(result.code, 3) << result.err;
  EXPECT_TRUE(contains(result.err, "step 1: not finite: loss 9")) << result.err;
}

}  // namespace
}  // namespace dtrain
