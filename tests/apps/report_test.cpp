// dtrain-report on intact and truncated files of runs, and on hostile texts.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>

#include <fmt/format.h>

#include "apps/report/axis.h"
#include "apps/report/chart.h"
#include "apps/report/log_events.h"
#include "apps/report/metrics.h"
#include "apps/report/page.h"
#include "apps/report/read_run.h"
#include "apps/report/sections.h"
#include "dtrain/core/error.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain::report {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<Point> wave(size_t points) {
  std::vector<Point> all;
  for (size_t i = 0; i < points; ++i) all.push_back({static_cast<double>(i), std::sin(0.01 * static_cast<double>(i))});
  return all;
}

TEST(Decimation, KeepsExtremesEndsAndNonFiniteValues) {
  std::vector<Point> points = wave(100'000);
  points[12'345].value = 50;
  points[77'777].value = -60;
  points[50'000].value = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Point> kept = decimated(points);
  EXPECT_LE(kept.size(), 3 * kColumns + 2);
  EXPECT_GE(kept.size(), kColumns);
  const auto has = [&](double step) { return std::ranges::find(kept, step, &Point::step) != kept.end(); };
  for (const double step : {0.0, 12'345.0, 50'000.0, 77'777.0, 99'999.0}) EXPECT_TRUE(has(step)) << step;
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &Point::step));
  EXPECT_EQ(decimated(wave(700)).size(), 700u);
}

TEST(Decimation, MeansPerColumn) {
  std::vector<Point> points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), i % 2 == 0 ? 1.0 : 3.0});
  points[999].value = std::numeric_limits<double>::infinity();
  const std::vector<Point> mean = means(points, 10);
  ASSERT_EQ(mean.size(), 10u);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(mean[i].value, 2, 0.02) << i;
  EXPECT_LT(mean[9].value, 2);
}

TEST(Axis, HasRoundEndsAndTicks) {
  Range range;
  for (const double value : {0.13, 9.7, std::nan("")}) range.add(value);
  const Axis axis = round_axis(range);
  EXPECT_LE(axis.low, 0.13);
  EXPECT_GE(axis.high, 9.7);
  EXPECT_EQ(ticks_of({0, 10}, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  for (const double one : {0.0, 5.0, -1e300, 1e300, 1e-320}) {
    Range same;
    same.add(one);
    const Axis around = round_axis(same);
    EXPECT_TRUE(around.high > around.low && std::isfinite(around.high - around.low)) << one;
    EXPECT_LE(ticks_of(around, 4).size(), 16u) << one;
  }
  EXPECT_EQ(short_number(123'456), "123.5k");
  EXPECT_EQ(short_number(0.00012), "0.00012");
}

class ReportFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file((scratch_ / name).string(), text);
    return (scratch_ / name).string();
  }
  std::string folder() const { return scratch_.path().string(); }
  TempDirectory scratch_;
};

TEST_F(ReportFiles, SkipsATruncatedLastLineWithANotice) {
  const std::string lines = "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":null}\n";
  const RunData run = read_run(write("run.jsonl", lines + "{\"step\":3,\"lo"), 1);
  ASSERT_EQ(run.curves.at("loss").size(), 2u);
  EXPECT_EQ(run.not_finite, 1u);
  ASSERT_EQ(run.notices.size(), 1u);
  EXPECT_TRUE(contains(run.notices[0], "run.jsonl: skipped the truncated last line")) << run.notices[0];
  EXPECT_TRUE(read_run(write("whole.jsonl", lines), 1).notices.empty());
}

TEST_F(ReportFiles, DamageElsewhereIsRefusedWithItsLine) {
  const std::string damaged = write("run.jsonl", "{\"step\":1,\"loss\":2.5}\ndear diary\n{\"step\":2}\n");
  expect_error([&] { (void)read_run(damaged, 1); }, Fault::data, "run.jsonl, line 2: no line of a metrics file");
  const std::string table = write("run.csv", "step,loss\n1,2.5\n2,x\n3,1\n");
  expect_error([&] { (void)read_run(table, 1); }, Fault::data, "run.csv, line 3: no line of a metrics file");
  const TempDirectory empty;
  expect_error([&] { (void)read_run(empty.path().string(), 1); }, Fault::data, "no run, expected a folder");
}

TEST_F(ReportFiles, TablesOfValuesAreTheSameCurves) {
  const RunData run = read_run(write("run.csv", "step,\"a,\"\"b\",loss\n1,5,2.5\n2,,2\n3,7,1"), 1);
  ASSERT_EQ(run.curves.at("a,\"b").size(), 1u);
  ASSERT_EQ(run.curves.at("loss").size(), 2u);
  EXPECT_EQ(run.curves.at("loss")[1].value, 2);
  EXPECT_EQ(run.notices.size(), 1u);  // the last number may be truncated
}

TEST_F(ReportFiles, ALogTellsOfAKillARestartAndAFailure) {
  RunData run;
  read_log(write("train.log",
                 "Schedule:    0.1\n7\timages/sec: 305.1 +/- 0.0 (jitter = 0.0)\t8.053\n"
                 "Restored step 4 from t/checkpoints/step-4\nSchedule:    0.1\nstep 9/20  loss 1\n"
                 "note: stopped on request at step 9; the same command resumes from there\n"
                 "Restored step 9 from t\nSchedule:    0.1\nerror: rank 1 on b: lost\n"),
           run);
  std::vector<EventKind> kinds;
  for (const LogEvent& event : run.events) kinds.push_back(event.kind);
  using enum EventKind;
  EXPECT_EQ(kinds, (std::vector{start, loss, restart, stop, restart, failure}));
  EXPECT_EQ(run.events[1].step, 7u);
  EXPECT_EQ(run.events[3].step, 9u);
  EXPECT_EQ(run.events[5].line, 9u);
}

TEST_F(ReportFiles, ALogOfNothingButErrorsIsLimited) {
  std::string log = "Schedule:    0.1\n";
  for (int i = 0; i < 2000; ++i) log += "error: " + std::string(3000, 'x') + "\n";
  log += "Finished in 1 s\n";
  for (int i = 0; i < 600; ++i) log += "Restored step 4 from t\n";
  log += "note: written after all\n";
  RunData run;
  read_log(write("train.log", log), run);
  size_t bytes = 0;
  for (const LogEvent& event : run.events) bytes += event.text.size();
  EXPECT_LT(bytes, 600'000u);
  EXPECT_EQ(std::ranges::count(run.events, EventKind::failure, &LogEvent::kind), 500);
  EXPECT_EQ(run.events.back().line, 2603u);
  EXPECT_TRUE(std::ranges::is_sorted(run.events, {}, &LogEvent::line));
  EXPECT_EQ(std::ranges::count(run.events, 2602u, &LogEvent::line), 1)
      << "the last word, by which the outcome is told, stays";
  EXPECT_TRUE(std::ranges::any_of(run.notices, [](const std::string& notice) {
    return notice.ends_with("train.log: 1500 more events of the kind \"failure\" are left out");
  }));
}

TEST_F(ReportFiles, TimelinesMayLackTheirEnd) {
  write("timeline.json",
        "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"rank 0\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1,\"args\":{\"name\":\"steps\"}},\n"
        "{\"name\":\"step 1\",\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":10,\"dur\":5},\n"
        "{\"name\":\"step 2\",\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":20,\"dur\":5},\n{\"name\":\"st");
  const RunData run = read_run(folder(), 1);
  ASSERT_EQ(run.lanes.size(), 1u);
  EXPECT_EQ(run.lanes[0].spans.size(), 2u);
  EXPECT_EQ(run.lanes[0].names, std::vector<std::string>{"step"});
  EXPECT_TRUE(contains(run.notices.at(0), "1 invalid lines")) << run.notices[0];
  EXPECT_TRUE(contains(to_html(run.lanes), "timeline.json, rank 0: steps"));
}

TEST_F(ReportFiles, TextsAreEscaped) {
  const std::string attack = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\x01\xff";
  RunData run{.name = attack, .path = attack};
  run.curves[attack] = wave(10);
  run.curves[attack + "_ms"] = wave(10);
  run.events = {{EventKind::failure, attack, 1, 1, attack}};
  run.settings = {{attack, attack}};
  run.checkpoints = {{1, 1, false, attack}};
  run.lanes = {{attack, attack, {attack}, {{0, 1, 0}}}};
  run.samples = {{attack, {attack}, {{"", 1, 1, attack, attack, {attack}}}, {}, {{attack, attack, attack, attack}}}};
  run.notices = {attack};
  const std::string page = to_html(attack, {run, run});
  EXPECT_EQ(count(page, "<script"), count(page, "</script>"));
  EXPECT_EQ(count(page, "<script"), 1 + count(page, "<figure class=\"chart\">"));
  EXPECT_FALSE(contains(page, "<img src=x"));
  EXPECT_FALSE(contains(page, "'><"));
  EXPECT_EQ(page.find_first_of("\x01\xff"), page.npos);
}

TEST_F(ReportFiles, ThePageIsSelfContained) {
  RunData run{.name = "a"};
  run.curves["loss"] = wave(10);
  const std::string page = to_html("Title", {run});
  EXPECT_EQ(count(page, "http:"), count(page, "http://www.w3.org/2000/svg"));  // a name, which is never fetched
  for (const char* part : {"https:", "@import", "url(", "<link", "src=\""}) EXPECT_FALSE(contains(page, part)) << part;
  for (const char* part : {"default-src 'none'", "prefers-color-scheme: dark", "<html lang=\"en\">", "role=\"slider\"",
                           "aria-valuetext=", "<caption>", "scope=\"col\""})
    EXPECT_TRUE(contains(page, part)) << part;
}

TEST_F(ReportFiles, ItsSizeDoesNotGrowWithTheSteps) {
  const auto page_of = [](size_t steps) {
    RunData run{.name = "a"};
    for (const char* name : {"loss", "learning_rate", "images_per_sec", "forward_ms", "backward_ms"})
      run.curves[name] = wave(steps);
    Lane lane{"rank 0", "steps", {"step"}, {}};
    for (size_t i = 0; i < steps; ++i) lane.spans.push_back({static_cast<double>(i), static_cast<double>(i) + 0.5, 0});
    run.lanes = {lane};
    return to_html("Title", {run});
  };
  const std::string small = page_of(10'000), large = page_of(100'000);
  EXPECT_EQ(count(small, "<"), count(large, "<"));
  EXPECT_LT(large.size(), small.size() + small.size() / 10);
  EXPECT_LT(large.size(), 400'000u);
}

TEST_F(ReportFiles, OfSeveralRunsTheDifferencesAreNamed) {
  RunData a{.name = "a", .settings = {{"rate", "0.1"}, {"seed", "1"}}}, b = a;
  b.name = "b";
  EXPECT_TRUE(contains(setting_section({a, b}), "The runs have the same settings"));
  b.settings["rate"] = "0.2";
  const std::string section = setting_section({a, b});
  const std::string differences = section.substr(0, section.find("<details"));
  EXPECT_TRUE(contains(differences, "<td>0.1</td><td>0.2</td>")) << differences;
  EXPECT_FALSE(contains(differences, "seed"));
}

class ReportOfARun : public CnnBenchmarks {};

TEST_F(ReportOfARun, KilledAndResumed) {
  const Arguments arguments =
      real("run") + Arguments{"--metrics_file=" + path("run/metrics.jsonl"), "--device=cpu", "--num_batches=1000000"};
  std::filesystem::create_directory(path("run"));
  Program killed(kProgram, arguments);
  ASSERT_TRUE(killed.wait_for("\n12\timages/sec"));
  killed.signal(SIGKILL);
  const std::string log = killed.finish().out;
  Program stopped(kProgram, arguments);
  ASSERT_TRUE(stopped.wait_for("\timages/sec"));
  stopped.signal(SIGTERM);
  const ProgramResult second = stopped.finish();
  EXPECT_EQ(second.code, 75) << second.err;
  write_file(path("run/train.log"), log + second.out + second.err);
  const ProgramResult made = run_program("dtrain-report", {path("run"), "--output=" + path("report.html")});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string page = read_file(path("report.html"));
  for (const char* part : {"the previous process ended without a message", "Restored step", ">loss<", "images_per_sec",
                           "--save_model_steps", "global batch", "complete", "stopped on request"})
    EXPECT_TRUE(contains(page, part)) << part;
  const ProgramResult refused = run_program("dtrain-report", {path("nothing")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "nothing")) << refused.err;
  EXPECT_EQ(run_program("dtrain-report", {}).code, 1);
}

}  // namespace
}  // namespace dtrain::report
