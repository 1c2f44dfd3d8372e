// --summary_verbosity and --save_summaries_steps: TensorBoard events with tf_cnn_benchmarks' tags.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "dtrain/io/safetensors.h"
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

TEST_F(CnnSummaries, AreWrittenAtTheGivenInterval) {
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
}

// The events of a training, read back.
std::vector<ReadEvent> events_of(const std::string& folder) {
  std::vector<ReadEvent> events;
  for (const std::string& file : event_files_in(folder))
    for (ReadEvent& event : read_events(file)) events.push_back(std::move(event));
  return events;
}

TEST_F(CnnSummaries, VerbosityAddsHistogramsAndImages) {
  const auto train_with = [&](const std::string& folder, int verbosity, const Arguments& more = {}) {
    const ProgramResult result =
        train(real(folder) +
              Arguments{"--num_batches=4", "--num_warmup_batches=0", "--save_summaries_steps=2",
                        "--summary_verbosity=" + std::to_string(verbosity)} +
              more);
    EXPECT_EQ(result.code, 0) << result.err;
    return events_of(path(folder));
  };
  std::map<std::string, ReadHistogram> logarithms;
  for (const ReadEvent& event : train_with("two", 2)) {
    EXPECT_TRUE(event.images.empty());
    EXPECT_LE(event.histograms.size(), 1u) << event.step;
    if (!event.histograms.empty()) logarithms = event.histograms;
  }
  ASSERT_TRUE(logarithms.contains("log_gradients_summary/log_gradients"));

  std::map<uint64_t, std::map<std::string, ReadHistogram>> three;
  for (const ReadEvent& event : train_with("three", 3)) {
    if (event.histograms.empty()) continue;
    three[event.step] = event.histograms;
    ASSERT_EQ(event.images.size(), 3u);
    for (const auto& [tag, image] : event.images) {
      EXPECT_TRUE(tag.starts_with("images/image/")) << tag;
      EXPECT_EQ(image.width, 16u);
      EXPECT_TRUE(image.png.starts_with("\x89PNG")) << tag;
    }
  }
  ASSERT_EQ(three.size(), 2u);
  double gradients = 0;
  for (const auto& [tag, histogram] : three[4]) {
    EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), histogram.num) << tag;
    if (tag.ends_with("/gradients")) gradients += histogram.num;
  }
  const ReadHistogram& all = three[4].at("log_gradients_summary/log_gradients");
  EXPECT_LE(all.num, gradients);
  EXPECT_GT(all.num, gradients / 2);
  EXPECT_EQ(all.counts, logarithms["log_gradients_summary/log_gradients"].counts) << "two runs are alike";
}

std::vector<float> bias_of(const std::string& checkpoint) {
  const SafetensorsFile file(checkpoint + "/model.safetensors");
  const SafetensorsEntry* entry = file.find("fc.bias");
  std::vector<float> values(entry->bytes / sizeof(float));
  file.read(*entry, values.data());
  return values;
}

// From the parameter change under plain SGD: the arena holds the sum over the micro-steps.
TEST_F(CnnSummaries, HistogramsHoldTheStepsGradients) {
  const ProgramResult result =
      train(real("run") + Arguments{"--num_batches=3", "--num_warmup_batches=0", "--save_summaries_steps=1",
                                    "--summary_verbosity=3", "--gradient_accumulation=3", "--optimizer=sgd",
                                    "--weight_decay=0", "--init_learning_rate=0.5", "--save_model_steps=1"});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const ReadEvent& event : events_of(path("run"))) {
    if (event.step < 2 || event.histograms.empty()) continue;
    const int step = static_cast<int>(event.step);
    const std::vector<float> before = bias_of(checkpoint("run", step - 1)), after = bias_of(checkpoint("run", step));
    double sum = 0, squares = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const double gradient = (before[i] - after[i]) / 0.5;
      sum += gradient;
      squares += gradient * gradient;
    }
    const ReadHistogram& shown = event.histograms.at("fc.bias/gradients");
    EXPECT_NEAR(shown.sum, sum, 1e-5) << step;
    EXPECT_NEAR(shown.sum_squares / squares, 1, 1e-3) << step;
    const ReadHistogram& values = event.histograms.at("fc.bias");
    EXPECT_EQ(values.max, *std::ranges::max_element(after)) << step;
  }
}

TEST_F(CnnSummaries, SettingsAreATextAndHyperParameters) {
  ASSERT_EQ(train(run_of(2, {"--summary_verbosity=1", "--save_summaries_steps=1"})).code, 0);
  std::string text, start, end;
  for (const ReadEvent& event : events_of(path("run"))) {
    for (const auto& [tag, words] : event.texts) text += words;
    for (const auto& [tag, content] : event.sessions) (tag.ends_with("start_info") ? start : end) += content;
  }
  EXPECT_TRUE(contains(text, "| model | resnet20 |\n")) << text;
  EXPECT_TRUE(contains(start, "global batch")) << start;
  EXPECT_FALSE(end.empty()) << "the run is complete";
}

TEST_F(CnnSummaries, EvaluationsHaveASeparateFolder) {
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
