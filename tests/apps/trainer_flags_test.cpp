// Best checkpoint, early stopping, learning-rate range test, and throughput reports.
#include <nlohmann/json.hpp>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class TrainerFlags : public CnnBenchmarks {
 protected:
  // Evaluates and saves a checkpoint every fourth step.
  Arguments evaluated(const std::string& train_dir) const {
    return real(train_dir) + Arguments{"--eval_during_training_every_n_steps=4", "--max_ckpts_to_keep=2"};
  }
  std::string best(const std::string& train_dir) const { return fs::read_symlink(path(train_dir) + "/best"); }
  std::vector<std::string> checkpoints(const std::string& train_dir) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(train_dir) + "/checkpoints"))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(TrainerFlags, AKillBeforeTheLinkToTheBestCheckpointChangesNothing) {
  const Arguments follows = {"--keep_best=loss"};
  const ProgramResult whole = train(evaluated("whole") + follows);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string link = best("whole");
  const std::vector<std::string> kept = checkpoints("whole");
  for (const char* step : {"4", "12"}) {
    const std::string train_dir = std::string("killed-") + step;
    Program program(kProgram, evaluated(train_dir) + follows,
                    {.variables = {{"DTRAIN_FAULT", "rank=0,step=" + std::string(step) + ",kind=kill_evaluated"}}});
    const ProgramResult killed = program.finish();
    if (contains(killed.err, "built without fault injection")) GTEST_SKIP() << "SKIPPED: a build with DTRAIN_FAULTS";
    ASSERT_EQ(killed.code, 128 + 9) << killed.err;
    const ProgramResult rest = train(evaluated(train_dir) + follows);
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(best(train_dir), link);
    // The start after a kill saves at every second step if that pays: of the last two checkpoints, the first may
    // differ.
    const std::vector<std::string> found = checkpoints(train_dir);
    ASSERT_EQ(found.size(), kept.size());
    EXPECT_NE(std::ranges::find(found, fs::path(link).filename().string()), found.end());
    EXPECT_EQ(found.back(), kept.back());
    expect_equal_checkpoints("whole", train_dir);
    const auto file = [&](const std::string& name) { return read_file(path(name) + "/evaluations.json"); };
    EXPECT_EQ(file(train_dir), file("whole"));
  }
  const ProgramResult evaluated =
      train({"--model=resnet20", "--data_name=imagenet", "--image_size=16", "--num_classes=4", "--batch_size=4",
             "--data_dir=" + data(), "--eval", "--train_dir=" + path("whole") + "/best"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("Successfully loaded model from " + path("whole") + "/best"), std::string::npos);
}

TEST_F(TrainerFlags, TrainingEndsEarly) {
  // No loss improves by that much.
  const Arguments impatient = {"--early_stop_patience=2", "--early_stop_min_delta=1e9"};
  const ProgramResult ended = train(evaluated("early") + impatient);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("training ends early: loss has not improved for 2 evaluations; the best was"),
            std::string::npos)
      << ended.err;
  EXPECT_TRUE(fs::exists(checkpoint("early", 12)));
  EXPECT_FALSE(fs::exists(checkpoint("early", 16)));
  EXPECT_EQ(train(evaluated("early") + impatient).code, 0);
  EXPECT_FALSE(fs::exists(checkpoint("early", 16)));
}

TEST_F(TrainerFlags, RefusesUnknownMetrics) {
  const auto refusal = [&](const Arguments& more) {
    const ProgramResult result = train(more);
    EXPECT_EQ(result.code, 1) << result.err;
    return result.err;
  };
  EXPECT_NE(refusal(real("x") + Arguments{"--keep_best=loss"}).find("need one of --eval_during_training_*"),
            std::string::npos);
  EXPECT_NE(refusal(evaluated("x") + Arguments{"--keep_best=accuracy"})
                .find("evaluations have no metric 'accuracy'; they have loss, top_1_accuracy, top_5_accuracy"),
            std::string::npos);
  EXPECT_NE(refusal(evaluated("x") + Arguments{"--early_stop_metric=loss"}).find("need --early_stop_patience"),
            std::string::npos);
  EXPECT_NE(refusal(synthetic() + Arguments{"--find_learning_rate", "--forward_only"}).find("--find_learning_rate"),
            std::string::npos);
}

TEST_F(TrainerFlags, WeightEmaIsEvaluatedBesideTheParameters) {
  const ProgramResult trained = train(real("averaged") + Arguments{"--weight_ema=0.5"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const ProgramResult evaluated = train(real("averaged") + Arguments{"--eval", "--metrics_file=" + path("m.json")});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("\nAveraged parameters: Accuracy @ 1 = "), std::string::npos) << evaluated.out;
}

TEST_F(TrainerFlags, LearningRateRangeTestSavesNothing) {
  const ProgramResult found =
      train(real("search") + Arguments{"--find_learning_rate", "--find_learning_rate_steps=30",
                                       "--find_learning_rate_from=1e-4", "--find_learning_rate_to=10",
                                       "--find_learning_rate_file=" + path("sweep.json")});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_NE(found.out.find("\nLearning rate\tLoss\tSmoothed loss\n1.0000e-04\t"), std::string::npos) << found.out;
  EXPECT_NE(found.out.find("\nSuggested learning rate: "), std::string::npos) << found.out;
  EXPECT_FALSE(fs::exists(path("search")));
  const auto json = nlohmann::json::parse(read_file(path("sweep.json")));
  EXPECT_GT(json.at("suggestion").get<double>(), 1e-4);
  EXPECT_EQ(json.at("points").at(0).at("learning_rate"), 1e-4);
}

TEST_F(TrainerFlags, ReportsThroughputAndRemainingTime) {
  const ProgramResult run =
      train(synthetic() + Arguments{"--num_batches=4", "--display_every=1", "--display_eta", "--peak_tflops=0.5",
                                    "--metrics_file=" + path("metrics.json")});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\t0:00:00 left\n"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\nModel FLOPs: "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(" % of the stated peak of 500.00 GFLOP/s\n"), std::string::npos) << run.out;
  const std::string metrics = read_file(path("metrics.json"));
  const auto last = nlohmann::json::parse(metrics.substr(metrics.rfind("{\"step\"")));
  EXPECT_EQ(last.at("seconds_left"), 0);
  EXPECT_GE(last.at("data_wait_share"), 0);
  EXPECT_NEAR(last.at("model_flops_utilization").get<double>(), last.at("model_flops_per_sec").get<double>() / 0.5e12,
              1e-9);
  const ProgramResult measured = train(synthetic() + Arguments{"--num_batches=2"});
  EXPECT_NE(measured.out.find(" % of the measured peak of "), std::string::npos) << measured.out;
}

}  // namespace
}  // namespace dtrain
