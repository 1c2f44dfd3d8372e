// --trace_file, --tfprof_file, --timeline and --graph_file.
#include <algorithm>
#include <csignal>
#include <map>

#include <nlohmann/json.hpp>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

using Event = nlohmann::json;

class CnnTracing : public CnnBenchmarks {
 protected:
  Arguments run_with(const Arguments& more) const {
    return synthetic() + Arguments{"--num_warmup_batches=2", "--num_batches=3"} + more;
  }
};

// The spans of a trace by the names of their lanes.
std::map<std::string, std::vector<Event>> lanes_of(const std::string& text) {
  const Event events = Event::parse(text);
  std::map<Event, std::string> names;
  std::map<std::string, std::vector<Event>> lanes;
  for (const Event& event : events) {
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X") lanes[names.at(event["tid"])].push_back(event);
  }
  return lanes;
}

bool has(const std::vector<Event>& spans, const std::string& name) {
  return std::ranges::any_of(spans, [&](const Event& span) { return span["name"] == name; });
}

TEST_F(CnnTracing, TheTraceHasTheStepAndChangesNothing) {
  const ProgramResult plain = train(real("plain"));
  const ProgramResult traced = train(
      real("traced") + Arguments{"--trace_file=" + path("t"), "--tfprof_file=" + path("p"), "--timeline=" + path("l")});
  ASSERT_EQ(traced.code, 0) << traced.err;
  expect_equal_checkpoints("plain", "traced");
  EXPECT_TRUE(contains(traced.out, "Dumping trace to " + path("t") + "\n")) << traced.out;
  auto lanes = lanes_of(read_file(path("t")));
  const std::vector<Event>& compute = lanes["compute"];
  ASSERT_FALSE(compute.empty());
  EXPECT_EQ(compute[0]["name"], "step 1");
  double end = 0;
  for (const Event& span : compute) {
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
  EXPECT_TRUE(contains(result.err, "step 2 is traced instead")) << result.err;
  EXPECT_TRUE(read_file(path("t")).starts_with("lane\tbegin_ms\tms\tname\tdetails\ncompute\t0.000\t"));
  EXPECT_TRUE(contains(result.out, "Profile of 3 steps")) << result.out;
  EXPECT_TRUE(contains(read_file(path("g")), "\ntotal "));
  EXPECT_FALSE(contains(read_file(path("g")), "(not in this pass)"));
}

TEST_F(CnnTracing, WhatCannotBeWrittenEndsNoRun) {
  const ProgramResult result = train(run_with({"--trace_file=" + path("none/t"), "--tfprof_file=" + path("none/p")}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, path("none/t"))) << result.err;
  EXPECT_TRUE(contains(result.err, path("none/p"))) << result.err;
  EXPECT_NE(train(run_with({"--timeline=" + path("none/l")})).code, 0);
  const ProgramResult refused = train(run_with({"--eval", "--train_dir=" + path("run"), "--trace_file=" + path("t")}));
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.err, "--eval makes none")) << refused.err;
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
