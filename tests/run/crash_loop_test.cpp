#include "libdtrain/run/crash_loop.h"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "dtrain/core/error.h"
#include "dtrain/run/cadence.h"
#include "libdtrain/run/crash_marker.h"
#include "tests/files.h"
#include "tests/run/drawn_task.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::string marker(const std::string& errors, const std::string& killed = "0") {
  return R"({"checkpoint_step": 0, "starts": 3, "errors": )" + errors + R"(, "killed_for_memory": 0, "killed": )" +
         killed + R"(, "error_step": 4, "code": 2, "error": "", "open": false, "trained": true, "control_group": "",
         "oom_kills": 0, "memory_limit": 0, "kernel_time": 0, "pids": []})";
}

class Starts : public testing::Test {
 protected:
  Starts() { memory_kills(0); }

  // OOM-kill counter of the cgroup.
  void memory_kills(int count, const std::string& limit = "536870912") const {
    for (const char* folder : {"proc/self", "sys/fs/cgroup/job"}) std::filesystem::create_directories(root / folder);
    write_file(root / "proc/self/cgroup", "0::/job\n");
    write_file(root / "sys/fs/cgroup/job/memory.events", "oom 1\noom_kill " + std::to_string(count) + "\n");
    write_file(root / "sys/fs/cgroup/job/memory.max", limit + "\n");
  }
  CrashLoop loop(bool is_chief = true) const { return {directory.path().string(), is_chief, root.path()}; }
  // A start from step 0 that makes a step and is killed; returns the number of earlier ones.
  int killed() const {
    CrashLoop start = loop();
    const int before = start.begin(0);
    start.begin_attempt({});
    start.first_step_done();
    return before;
  }
  void fails(const Error& error, uint64_t at, bool trains = true, uint64_t from = 0) const {
    CrashLoop start = loop();
    start.begin(from);
    start.begin_attempt({});
    if (trains) start.first_step_done();
    start.record(error, at);
  }
  void expect_refusal(Fault fault, const std::string& text) const {
    expect_error([&] { loop().begin(0); }, fault, text);
  }

  TempDirectory directory, root;
};

TEST_F(Starts, ADamagedMarkerCountsNothing) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), marker("-3"), marker("1e300"), marker("\"3\""),
        marker("2147483648"), std::string(1 << 15, '['), std::string(1 << 17, ' ')}) {
    write_file(directory / "starts.json", text);
    EXPECT_NO_THROW(loop().begin(0)) << text.substr(0, 100);
  }
  write_file(directory / "starts.json", marker("3"));
  EXPECT_THROW(loop().begin(0), Error);
  EXPECT_NO_THROW(loop().begin(1)) << "the marker is that of another step";
}

TEST_F(Starts, KillsFromOutsideNeverStopTheRun) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(killed(), i);
  EXPECT_EQ(loop().begin(0), 10);
  CrashLoop later = loop();
  EXPECT_EQ(later.begin(5), 0) << "a checkpoint was reached";
}

TEST_F(Starts, ErrorsOfOnePlaceStopIt) {
  const Error error(Fault::data, "a bad record");
  fails(error, 7);
  fails(error, 20);
  fails(error, 21);
  killed();
  fails(error, 20);
  expect_refusal(Fault::data, "3 starts have trained from step 0");
}

TEST_F(Starts, CrashesStopIt) {
  for (int i = 0; i < CrashLoop::kStarts; ++i) {
    EXPECT_EQ(killed(), 0);
    write_file(loop().crash_path(), "");
  }
  expect_refusal(Fault::checkpoint, "the last ended with: a crash of a rank");
  EXPECT_FALSE(std::filesystem::exists(loop().crash_path()));
}

TEST_F(Starts, ACrashLeavesItsFileAndTakesItsCourse) {
  const std::string path = loop().crash_path();
  const pid_t child = fork();
  if (child == 0) {
    const CrashMarker marker(path);
    raise(SIGABRT);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(Starts, ErrorsElsewhereOfOthersOrBeforeTheFirstStepDoNot) {
  for (uint64_t i = 0; i < 6; ++i) {
    fails(Error(Fault::data, "a bad record"), 10 * i);
    fails(Error(Fault::communication, "lost rank 1"), 7);
    fails(Error(Fault::data, "no data"), 0, /*trains=*/false);
  }
  EXPECT_EQ(loop().begin(0), 6) << "the end of another rank is a kill from outside";
}

// Rank 1 is in the next step before the chief sees the first as done.
TEST_F(Starts, AnErrorOfAnotherRankIsNotLostToTheChief) {
  for (int i = 0; i < 3; ++i) {
    CrashLoop chief = loop(), other = loop(/*is_chief=*/false);
    for (CrashLoop* rank : {&chief, &other}) rank->begin(0);
    for (CrashLoop* rank : {&chief, &other}) rank->begin_attempt({});
    other.first_step_done();
    other.record(Error(Fault::data, "a bad record"), 1);
    chief.first_step_done();
  }
  expect_refusal(Fault::data, "3 starts have trained from step 0 and failed at the same place");
}

// A run that is killed repeatedly saves after each step, hence right before the failing one.
TEST_F(Starts, ErrorsRightAfterACheckpointStopIt) {
  for (int i = 0; i < 3; ++i) fails(Error(Fault::numeric, "step 8: not finite"), 7, /*trains=*/false, /*from=*/7);
  expect_error([&] { loop().begin(7); }, Fault::numeric, "step 8: not finite");
}

TEST_F(Starts, OnesThatAreLeftOutCountAsNothing) {
  for (int i = 0; i < 4; ++i) {
    CrashLoop start = loop();
    EXPECT_EQ(start.begin(0), 0);
    start.begin_attempt({});
    start.first_step_done();
    start.leave_out();
  }
}

TEST_F(Starts, KillsForLackOfMemoryStopIt) {
  for (int kills = 1; kills <= 3; ++kills) {
    CrashLoop start = loop();
    EXPECT_EQ(start.begin(0), 0);
    start.begin_attempt({});
    if (kills == 2) start.first_step_done();  // in the first step or later
    memory_kills(kills);
  }
  expect_refusal(Fault::resource,
                 "3 starts from step 0 were killed for lack of memory before the next checkpoint: the "
                 "job needs more than the 512 MiB that its control group allowed; allow it more, or");
  expect_refusal(Fault::resource, "delete ");
  memory_kills(3, "268435456");
  expect_refusal(Fault::resource, "512 MiB");
  for (const char* more : {"536870913", "max"}) {
    memory_kills(3, more);
    EXPECT_NO_THROW(loop().begin(0)) << more;
  }
  memory_kills(3);
  std::filesystem::remove(directory / "starts.json");
  EXPECT_NO_THROW(loop().begin(0));
}

// With a new cgroup per start.
TEST_F(Starts, KillsForLackOfMemoryThatTheKernelLogsStopIt) {
  std::filesystem::create_directories(root / "dev");
  for (int i = 0; i < 3; ++i) {
    CrashLoop start = loop();
    EXPECT_EQ(start.begin(0), 0);
    start.begin_attempt({123, 124});
    write_file(root / "dev/kmsg", "3,1,9000000000000000,-;Out of memory: Killed process 124 (dtrain) total-vm:1kB\n");
  }
  expect_refusal(Fault::resource, "3 starts from step 0 were killed for lack of memory");
}

TEST(Cadence, SavesSoonerByHalves) {
  const Cadence steps{.total_steps = 1000, .save_every_steps = 20};
  EXPECT_EQ(steps.saving_sooner(0).save_every_steps, 20u);
  EXPECT_EQ(steps.saving_sooner(2).save_every_steps, 5u);
  EXPECT_EQ(steps.saving_sooner(2000).save_every_steps, 1u);
  EXPECT_EQ(Cadence{.total_steps = 1000}.saving_sooner(1).save_every_steps, 500u);
  const Cadence seconds{.total_steps = 1000, .save_every_seconds = 600};
  EXPECT_EQ(seconds.saving_sooner(1).save_every_seconds, 300);
  EXPECT_EQ(seconds.saving_sooner(1).save_every_steps, 0u);
  EXPECT_GT(seconds.saving_sooner(2000).save_every_seconds, 0);
}

class RunAfterKills : public RunTest {};

TEST_F(RunAfterKills, SavesSoonerAndSaysSo) {
  write_file(directory / "starts.json", marker("0", "9"));
  Rig rig(*context, *group);
  Diary diary;
  RunOptions with = saving(40);
  with.cadence.save_every_steps = 2000;
  dtrain::Run(rig.task, rig.trainer, *group, with, {&diary}).train();
  ASSERT_FALSE(diary.notices.empty());
  EXPECT_EQ(diary.notices[0],
            "9 starts from step 0 were killed before the next checkpoint: this one saves every 3 steps in place of "
            "2000, but no more often than a save takes");
  ASSERT_FALSE(diary.saves.empty());
  EXPECT_EQ(diary.saves[0], 3u);
  EXPECT_FALSE(std::filesystem::exists(directory / "starts.json"));
}

}  // namespace
}  // namespace dtrain
