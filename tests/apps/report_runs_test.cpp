// dtrain-report on files of our programs and front ends, intact and damaged.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include <fmt/format.h>

#include "apps/report/read_run.h"
#include "apps/report/sections.h"
#include "tests/apps/cnn_benchmarks_fixture.h"
#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain::report {
namespace {

std::vector<std::string> texts_of(const RunData& run, EventKind kind) {
  std::vector<std::string> texts;
  for (const LogEvent& event : run.events)
    if (event.kind == kind) texts.push_back(event.text);
  return texts;
}

// Report of a folder with a damaged file: a notice names it, and the other files are reported.
void expect_notice(const std::string& folder, const std::string& file, const std::string& text, const char* part) {
  const std::string whole = read_file(folder + "/" + file);
  const RunData before = read_run(folder, 1);
  EXPECT_TRUE(before.notices.empty()) << before.notices[0];
  write_file(folder + "/" + file, text);
  const RunData run = read_run(folder, 1);
  ASSERT_EQ(run.notices.size(), 1u) << text;
  EXPECT_TRUE(contains(run.notices[0], file) && contains(run.notices[0], part)) << run.notices[0];
  EXPECT_EQ(run.notices[0].find('\n'), std::string::npos);
  EXPECT_EQ(run.checkpoints.size(), before.checkpoints.size());
  EXPECT_EQ(run.settings, before.settings);
  EXPECT_EQ(texts_of(run, EventKind::start), texts_of(before, EventKind::start));
  EXPECT_TRUE(contains(to_html("Report", {run}), file));
  EXPECT_EQ(read_file(folder + "/" + file), text);
  write_file(folder + "/" + file, whole);
}

class ReportOfFrontEnds : public CnnBenchmarks {
 protected:
  // dtrain-train-imagenet, with log and checkpoints in one folder.
  ProgramResult aws(const Arguments& ours) const {
    return run_program("dtrain-train-imagenet",
                       Arguments{"-m", "resnet18", "--data_dir", data(), "-b", "4", "--log_dir", path("log"),
                                 "--num_batches=4", "--display_every=2", "--", "--model=resnet20", "--image_size=16"} +
                           ours);
  }
};

TEST_F(ReportOfFrontEnds, EvaluationsAreCurves) {
  const ProgramResult trained = aws({"--eval_during_training_every_n_steps=2", "--keep_best=top_1_accuracy"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const RunData run = read_run(path("log"), 1);
  const Json written = Json::parse(read_file(path("log/evaluations.json")))["evaluations"];
  ASSERT_EQ(written.size(), 2u);
  for (const auto& [name, value] : written[0]["values"].items()) {
    const std::vector<Point>& points = run.curves.at("eval_" + name);
    ASSERT_EQ(points.size(), 2u) << name;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(points[i].step, 2.0 * static_cast<double>(i + 1));
      EXPECT_EQ(points[i].value, written[i]["values"][name].get<double>()) << name;
    }
  }
  const std::string page = to_html("Report", {run});
  for (const char* part : {"eval_top_1_accuracy", "Best eval_loss", ">finished<", ">start<", "hvd_train.log"})
    EXPECT_TRUE(contains(page, part)) << part;
  ASSERT_EQ(texts_of(run, EventKind::end).size(), 1u);
  for (const LogEvent& event : run.events) EXPECT_EQ(event.step, event.kind == EventKind::end ? 4u : 0u) << event.text;

  const std::string text = read_file(path("log/evaluations.json"));
  expect_notice(path("log"), "evaluations.json", text.substr(0, text.size() / 2), "invalid JSON");
  expect_notice(path("log"), "evaluations.json", R"({"evaluations":[{"step":2}]})", "each with a step and values");
  write_file(path("log/evaluations.json"), R"({"evaluations":[{"step":2,"values":{"loss":null}}]})");
  EXPECT_EQ(read_run(path("log"), 1).not_finite, 1u);
}

TEST_F(ReportOfFrontEnds, StartsWithoutACheckpointAreFailures) {
  ASSERT_EQ(aws({}).code, 0);
  const ProgramResult failed = aws({"--init_learning_rate=1e30", "--num_batches=9"});
  ASSERT_EQ(failed.code, 3) << failed.err;
  const RunData run = read_run(path("log"), 1);
  const std::vector<std::string> failures = texts_of(run, EventKind::failure);
  ASSERT_FALSE(failures.empty());
  const std::string error = Json::parse(read_file(path("log/starts.json")))["error"];
  EXPECT_EQ(failures.back(), "1 starts from step 4 without a checkpoint; the last one ended with: " + error);
  EXPECT_EQ(texts_of(run, EventKind::restart).size(), 1u);
  EXPECT_TRUE(contains(to_html("Report", {run}), ">failed<"));

  expect_notice(path("log"), "starts.json", "{\"checkpoint_step\": 4, \"sta", "invalid JSON");
  expect_notice(path("log"), "starts.json", R"({"checkpoint_step": -1})", "expected checkpoint_step, starts and error");
}

class ReportOfADetector : public MaskRcnn {};

TEST_F(ReportOfADetector, StatsAreCurves) {
  const ProgramResult trained =
      run_program("dtrain-mask-rcnn", joined_words(train_words("run", 4), {"TRAIN.STEPS_PER_EPOCH=2"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const RunData run = read_run(path("run"), 1);
  const std::string text = read_file(path("run/stats.json"));
  const Json rows = Json::parse(text);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& [name, value] : rows[0].items()) {
    if (name == "epoch_num" || name == "global_step") continue;
    const std::vector<Point>& points = run.curves.at(name);
    ASSERT_EQ(points.size(), 2u) << name;
    EXPECT_EQ(points[1].step, 4);
    EXPECT_EQ(points[0].value, value.get<double>()) << name;
  }
  EXPECT_EQ(texts_of(run, EventKind::end).size(), 1u);
  EXPECT_TRUE(contains(to_html("Report", {run}), "total_cost"));

  for (const std::string& damaged : {text.substr(0, text.size() / 2), std::string(R"([{"epoch_num":1}])")}) {
    write_file(path("run/stats.json"), damaged);
    const ProgramResult refused = run_program("dtrain-report", {path("run"), "--output=" + path("report.html")});
    EXPECT_EQ(refused.code, 2);
    EXPECT_TRUE(refused.err.starts_with("error: ") && contains(refused.err, "stats.json: ")) << refused.err;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(path("report.html")));
    EXPECT_EQ(read_file(path("run/stats.json")), damaged);
  }
  write_file(path("run/metrics.jsonl"), "{\"step\":1,\"loss\":2.5}\n");  // takes precedence if both exist
  EXPECT_EQ(run_program("dtrain-report", {path("run"), "--output=" + path("report.html")}).code, 0);
}

class ReportOfRanks : public CnnBenchmarks {};

TEST_F(ReportOfRanks, HaveATimelineFromTheMetricsOfTheFirst) {
  std::filesystem::create_directory(path("run"));
  const ProgramResult trained =
      train({"--model=lenet", "--device=cpu", "--num_gpus=2", "--batch_size=2", "--num_batches=6", "--display_every=2",
             "--num_warmup_batches=0", "--num_intra_threads=1", "--metrics_file=" + path("run/metrics.jsonl")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  RunData run = read_run(path("run"), 1);
  EXPECT_FALSE(run.curves.contains("rank_0_ms"));
  ASSERT_EQ(run.rank_lanes.size(), 2u);
  double end = 0;
  for (const Lane& lane : run.rank_lanes) {
    ASSERT_GE(lane.spans.size(), 3u) << lane.process;
    for (size_t i = 1; i < lane.spans.size(); ++i) EXPECT_EQ(lane.spans[i].begin, lane.spans[i - 1].end);
    if (end == 0) end = lane.spans.back().end;
    EXPECT_DOUBLE_EQ(lane.spans.back().end, end);
  }
  const std::string page = to_html("Report", {run});
  for (const char* part : {"rank 0: steps", "rank 1: steps", "wait for the slowest rank", "From the metrics"})
    EXPECT_TRUE(contains(page, part)) << part;
  run.rank_lanes.clear();
  EXPECT_TRUE(contains(to_html("Report", {run}), "With --timeline=FILE.json"));
}

TEST_F(ReportOfRanks, WaitForTheSlowest) {
  // Two steps per line; rank 2 is missing from the second line on, as after a restart with fewer ranks.
  write_file(path("run.jsonl"),
             "{\"step\":12,\"loss\":1,\"rank_0_ms\":1,\"rank_1_ms\":4,\"rank_2_ms\":2}\n"
             "{\"step\":14,\"loss\":1,\"rank_0_ms\":null,\"rank_1_ms\":2}\n"
             "{\"step\":16,\"loss\":1,\"rank_0_ms\":0.5,\"rank_1_ms\":1,\"rank_x_ms\":5}\n");
  const RunData run = read_run(path("run.jsonl"), 1);
  EXPECT_TRUE(run.curves.contains("rank_x_ms") && run.curves.contains("loss"));
  ASSERT_EQ(run.rank_lanes.size(), 3u);
  const auto spans = [&](size_t rank) {
    std::vector<std::tuple<double, double, uint32_t>> all;
    for (const Span& span : run.rank_lanes[rank].spans) all.emplace_back(span.begin, span.end, span.name);
    return all;
  };
  using Spans = std::vector<std::tuple<double, double, uint32_t>>;
  EXPECT_EQ(spans(0), (Spans{{0, 2000, 0}, {2000, 8000, 1}, {12000, 13000, 0}, {13000, 14000, 1}}));
  EXPECT_EQ(spans(1), (Spans{{0, 8000, 0}, {8000, 12000, 0}, {12000, 14000, 0}}));
  EXPECT_EQ(spans(2), (Spans{{0, 4000, 0}, {4000, 8000, 1}}));
}

TEST_F(ReportOfRanks, ShareAColumnOverManySteps) {
  std::string lines;
  for (int step = 1; step <= 10'000; ++step)
    lines += fmt::format("{{\"step\":{},\"rank_0_ms\":2,\"rank_1_ms\":{}}}\n", step, step % 2 == 0 ? 4 : 1);
  write_file(path("run.jsonl"), lines);
  const RunData run = read_run(path("run.jsonl"), 1);
  ASSERT_EQ(run.rank_lanes.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    double times[2] = {};
    for (const Span& span : run.rank_lanes[rank].spans) times[span.name] += span.end - span.begin;
    EXPECT_EQ(run.rank_lanes[rank].spans.size(), 200u);
    EXPECT_NEAR(times[0], rank == 0 ? 20e6 : 25e6, 1);
    EXPECT_NEAR(times[0] + times[1], 30e6, 1);
  }
}

}  // namespace
}  // namespace dtrain::report
