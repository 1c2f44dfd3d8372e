// --summary_verbosity and --save_summaries_steps: TensorBoard's events by tf_cnn_benchmarks' names.
#include <fmt/format.h>

#include "tests/apps/cnn_benchmarks_fixture.h"
#include "tests/event_reader.h"

namespace dtrain {
namespace {

class CnnSummaries : public CnnBenchmarks {
 protected:
  Arguments run_of(int batches, const Arguments& more) const {
    return synthetic() +
           Arguments{"--num_warmup_batches=0", "--num_batches=" + std::to_string(batches), "--train_dir=" + path("run"),
                     "--display_every=1"} +
           more;
  }
};

TEST_F(CnnSummaries, AreWrittenEverySoManySteps) {
  const Arguments both = {"--summary_verbosity=1", "--save_summaries_steps=2", "--init_learning_rate=0.25"};
  const ProgramResult result = train(run_of(5, both));
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(train(run_of(8, both + Arguments{"--eval_during_training_every_n_steps=4"})).code, 0);
  auto shown = shown_scalars(path("run"));
  const std::map<uint64_t, float> rates = {{2, 0.25f}, {4, 0.25f}, {6, 0.25f}, {8, 0.25f}};
  EXPECT_EQ(shown["learning_rate"], rates);
  EXPECT_EQ(shown["total_loss"].size(), 4u);
  EXPECT_TRUE(contains(result.out, fmt::format("{:.3f}\n", shown["total_loss"][2]))) << result.out;
  EXPECT_EQ(shown["eval/Accuracy@1"].count(8), 1u);
  EXPECT_EQ(shown.count("loss") + shown.count("base_loss"), 0u);
}

TEST_F(CnnSummaries, NeedBothFlags) {
  ASSERT_EQ(train(run_of(2, {"--summary_verbosity=1"})).code, 0);
  ASSERT_EQ(train(run_of(4, {"--save_summaries_steps=1"})).code, 0);
  EXPECT_TRUE(event_files_in(path("run")).empty());
  const ProgramResult histograms = train(run_of(2, {"--summary_verbosity=3", "--save_summaries_steps=1"}));
  EXPECT_EQ(histograms.code, 1);
  EXPECT_TRUE(contains(histograms.err, "histograms are not served")) << histograms.err;
}

TEST_F(CnnSummaries, EvaluationsHaveAFolderOfTheirOwn) {
  const auto evaluate = [&](const std::string& folder) {
    const ProgramResult result =
        train(synthetic() +
              Arguments{"--eval", "--num_eval_batches=2", "--train_dir=" + folder, "--eval_dir=" + path("new/eval")});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(contains(result.out, "Successfully loaded model from " + folder)) << result.out;
  };
  ASSERT_EQ(train(run_of(2, {})).code, 0);
  ASSERT_EQ(train(run_of(3, {})).code, 0);
  evaluate(path("run"));
  evaluate(checkpoint("run", 2));
  auto shown = shown_scalars(path("new/eval"));
  EXPECT_EQ(shown.size(), 3u);
  for (const char* tag : {"eval/Accuracy@1", "eval/Accuracy@5", "eval/loss"}) {
    EXPECT_EQ(shown[tag].size(), 2u) << tag;
    EXPECT_EQ(shown[tag].count(2) + shown[tag].count(3), 2u) << tag;
  }
  EXPECT_TRUE(event_files_in(path("run")).empty());
}

}  // namespace
}  // namespace dtrain
