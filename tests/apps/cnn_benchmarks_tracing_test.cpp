// --trace_file, --tfprof_file, --profile, --timeline and --graph_file.
#include <algorithm>
#include <csignal>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/observers/roofline.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

using TraceEvent = nlohmann::json;

class CnnTracing : public CnnBenchmarks {
 protected:
  Arguments run_with(const Arguments& more) const {
    return synthetic() + Arguments{"--num_warmup_batches=2", "--num_batches=3"} + more;
  }
};

// Spans of a trace, by lane.
std::map<std::string, std::vector<TraceEvent>> lanes_of(const std::string& text) {
  const TraceEvent events = TraceEvent::parse(text);
  std::map<TraceEvent, std::string> names;
  std::map<std::string, std::vector<TraceEvent>> lanes;
  for (const TraceEvent& event : events) {
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X") lanes[names.at(event["tid"])].push_back(event);
  }
  return lanes;
}

bool has(const std::vector<TraceEvent>& spans, const std::string& name) {
  return std::ranges::any_of(spans, [&](const TraceEvent& span) { return span["name"] == name; });
}

TEST_F(CnnTracing, TheTraceHasTheStepAndChangesNothing) {
  const ProgramResult plain = train(real("plain"));
  const ProgramResult traced = train(
      real("traced") + Arguments{"--trace_file=" + path("t"), "--tfprof_file=" + path("p"), "--timeline=" + path("l")});
  ASSERT_EQ(traced.code, 0) << traced.err;
  expect_equal_checkpoints("plain", "traced");
  EXPECT_TRUE(contains(traced.out, "Dumping trace to " + path("t") + "\n")) << traced.out;
  auto lanes = lanes_of(read_file(path("t")));
  const std::vector<TraceEvent>& compute = lanes["compute"];
  ASSERT_FALSE(compute.empty());
  EXPECT_EQ(compute[0]["name"], "step 1");
  double end = 0;
  for (const TraceEvent& span : compute) {
    EXPECT_GE(span["ts"].get<double>(), 0);
    end = std::max(end, span["ts"].get<double>() + span["dur"].get<double>());
  }
  EXPECT_LE(end, compute[0]["dur"].get<double>() + 0.01);
  for (const char* name : {"input", "forward", "backward", "update", "conv2d conv1", "linear fc"})
    EXPECT_TRUE(has(compute, name)) << name;
  EXPECT_TRUE(has(lanes["input"], "wait for a batch"));
  EXPECT_TRUE(std::ranges::any_of(lanes, [](const auto& lane) { return lane.first.starts_with("loader "); }));
  EXPECT_TRUE(contains(traced.out, "Profile of 10 steps")) << traced.out;
  EXPECT_TRUE(contains(read_file(path("p")), "layer1.0.conv1")) << read_file(path("p"));
  EXPECT_EQ(lanes_of(read_file(path("l")))["steps"].size(), 24u);
}

TEST_F(CnnTracing, OtherFormsAndSteps) {
  const ProgramResult result =
      train(run_with({"--num_warmup_batches=0", "--trace_file=" + path("t"), "--nouse_chrome_trace_format",
                      "--graph_file=" + path("g"), "--tfprof_file=" + path("p")}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "tracing step 2 instead")) << result.err;
  EXPECT_TRUE(read_file(path("t")).starts_with("lane\tbegin_ms\tms\tname\tdetails\ncompute\t0.000\t"));
  EXPECT_TRUE(contains(result.out, "Profile of 3 steps")) << result.out;
  EXPECT_TRUE(contains(read_file(path("g")), "\ntotal "));
  EXPECT_FALSE(contains(read_file(path("g")), "(not in this pass)"));
}

TEST_F(CnnTracing, UnwritableTracesDoNotEndTheRun) {
  const ProgramResult result = train(
      run_with({"--trace_file=" + path("none/t"), "--tfprof_file=" + path("none/p"), "--profile=" + path("none/s")}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, path("none/t"))) << result.err;
  EXPECT_TRUE(contains(result.err, path("none/p"))) << result.err;
  EXPECT_TRUE(contains(result.err, path("none/s"))) << result.err;
  EXPECT_NE(train(run_with({"--timeline=" + path("none/l")})).code, 0);
  const ProgramResult refused = train(run_with({"--eval", "--train_dir=" + path("run"), "--trace_file=" + path("t")}));
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.err, "--eval makes none")) << refused.err;
}

TEST_F(CnnTracing, ProfileTableListsTheStepsOps) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: ResNet-50 at its full size, which sanitizers slow down most";
  const ProgramResult result = train(run_with({"--data_name=imagenet", "--image_size=224", "--model=resnet50_v1.5",
                                               "--batch_size=1", "--profile=" + path("p.svg")}));
  ASSERT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  while (std::getline(lines, line) && !line.starts_with("Op  ")) {
  }
  double sum = 0, operations = 0;
  while (std::getline(lines, line) && !line.starts_with("Ops ")) {
    const double milliseconds = std::stod(line.substr(48, 10));
    sum += milliseconds;
    if ((line.starts_with("conv2d") || line.starts_with("linear")) && contains(line, "forward"))
      operations += milliseconds / 1e3 * std::stod(line.substr(66, 10)) * 1e9;
  }
  EXPECT_NEAR(operations, 2 * 4.09e9, 0.02e9) << result.out;  // ResNet-50 v1.5 takes 4.09e9 multiply-adds an image
  EXPECT_NEAR(sum, std::stod(line.substr(4)), 0.02) << result.out;
  EXPECT_TRUE(contains(line, "; outside of them: ")) << line;
  EXPECT_TRUE(contains(read_file(path("p.svg")), "conv2d forward [1, 224, 224, 3] x [64, 7, 7, 3]"));
}

TEST_F(CnnTracing, InferenceHasForwardOpsOnly) {
  const ProgramResult result = train(run_with({"--forward_only", "--profile=" + path("p.svg")}));
  ASSERT_EQ(result.code, 0) << result.err;
  const size_t outside = result.out.find("; outside of them: ");
  ASSERT_NE(outside, std::string::npos) << result.out;
  std::istringstream parts(result.out.substr(outside + 19, result.out.find('\n', outside) - outside - 19));
  std::string part, phases;
  while (std::getline(parts, part, ',')) {
    const size_t number = part.rfind(' ');
    EXPECT_GE(std::stod(part.substr(number)), -0.001) << part;
    phases += part.substr(0, number);
  }
  EXPECT_TRUE(contains(phases, "input")) << phases;
  EXPECT_TRUE(contains(phases, "forward")) << phases;
}

// A step of 2 s: a compute-bound convolution of 1 s, and a memory-bound GEMM of 0.5 s.
std::vector<WorkRecord> two_ops() {
  const auto record = [](WorkLevel level, int depth, const char* name, double seconds, double flops, double bytes) {
    WorkRecord made{.level = level, .depth = depth, .name = name};
    if (level != WorkLevel::step) made.phase = "forward";
    made.seconds = seconds;
    made.flops = flops;
    made.bytes = bytes;
    return made;
  };
  std::vector<WorkRecord> records = {
      record(WorkLevel::step, 0, "step 1", 2, 0, 0), record(WorkLevel::phase, 1, "forward", 1.75, 0, 0),
      record(WorkLevel::op, 2, "conv2d", 1, 50e9, 1e9), record(WorkLevel::op, 2, "linear", 0.5, 1e9, 3e9)};
  records[2].inputs = {{1, 2, 2, 3}, {4, 1, 1, 3}, {4}};
  records[3].inputs = {{1, 3}, {4, 3}, {4}};
  return records;
}

TEST(Roofline, RowsAreBoundByComputeOrBandwidth) {
  const observers::Roofs roofs{.flops = 100e9, .bytes = 10e9};
  const std::vector<WorkRecord> records = two_ops();
  const std::vector<std::string> table = observers::roofline_table(records, roofs);
  ASSERT_EQ(table.size(), 5u);
  const auto ends = [&](size_t row, const std::string& text) { return table[row].ends_with(text); };
  EXPECT_TRUE(ends(2, "1.0   1000.000  50.0 %     50.00    1.000   50.0 %")) << table[2];
  EXPECT_TRUE(ends(3, "1.0    500.000  25.0 %     2.000    6.000   60.0 %")) << table[3];
  EXPECT_EQ(table[4],
            "Ops 1500.000 ms of a step of 2000.000; outside of them: between phases 250.000, forward 250.000");
}

TEST(Roofline, PlotCoordinates) {
  const std::string svg = observers::roofline_svg(two_ops(), {.flops = 100e9, .bytes = 10e9});
  // Of 0.1 to 100 FLOPs a byte over 620 pixels from 80, and of 1000 to 1 GFLOP/s over 440 from 60.
  const auto point = [&](const char* where, const char* op) {
    EXPECT_TRUE(contains(svg, fmt::format("<circle class=\"op forward\" {}", where))) << svg;
    EXPECT_TRUE(contains(svg, fmt::format("<title>{}", op))) << svg;
  };
  point("cx=\"637.8\" cy=\"250.8\"", "conv2d forward [1, 2, 2, 3] x [4, 1, 1, 3]: 50.0 %, 50.0 %");
  point("cx=\"188.1\" cy=\"455.8\"", "linear forward [1, 3] x [4, 3]: 25.0 %, 60.0 %");
  EXPECT_TRUE(contains(svg, "<polyline class=\"roof\" points=\"80.0,500.0 493.3,206.7 700.0,206.7\"/>")) << svg;
}

TEST_F(CnnTracing, TheTimelineOfAKilledRunCanBeRead) {
  Program program(kProgram, run_with({"--num_batches=1000000", "--display_every=1"}),
                  {.variables = {{"HOROVOD_TIMELINE", path("l")}}});
  ASSERT_TRUE(program.wait_for("\n5\timages/sec")) << program.finish().err;
  program.signal(SIGKILL);
  program.finish();
  EXPECT_GE(lanes_of(read_file(path("l")) + "]")["steps"].size(), 6u);
}

}  // namespace
}  // namespace dtrain
