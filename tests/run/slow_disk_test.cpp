// Checkpoints of a run on a hanging disk.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "libdtrain/run/checkpoints.h"
#include "tests/distributed/thread_communicator.h"
#include "tests/files.h"
#include "tests/run/drawn_task.h"
#include "tests/waiting_disk.h"

namespace dtrain {
namespace {

// In place of ending the process.
GroupOptions throwing_options() {
  GroupOptions options;
  options.fail = [](const std::string& report, Fault fault) { throw Error(fault, report); };
  return options;
}

class RunOnSlowDisk : public RunTest {
 protected:
  // Makes a step and starts its checkpoint.
  void begin_save() {
    directories_of_checkpoints();
    checkpoints.emplace(with, rig.trainer, *single, diary, disk);
    checkpoints->restore(state);
    checkpoints->begin_steps();
    checkpoints->step_done();
    state.step = 1;
    checkpoints->save(state);
  }
  // As left by an earlier run: creating them would also wait for the disk.
  void directories_of_checkpoints() const { std::filesystem::create_directories(directory / "checkpoints"); }
  void TearDown() override { disk.answer(); }

  RunOptions with = saving(20);
  std::unique_ptr<Group> single = make_single_group(throwing_options());
  Rig rig{*context, *single};
  Diary diary;
  TrainState state;
  WaitingDisk disk;
  std::optional<RunCheckpoints> checkpoints;
};

TEST_F(RunOnSlowDisk, EndsBetweenSavesByTheTimeoutWhichIsNoKill) {
  with.checkpoint_timeout = 0.05;
  begin_save();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  expect_error([&] { checkpoints->report(); }, Fault::resource,
               "the checkpoint of step 1 has been under way to " + with.train_dir);
  CrashLoop next(with.train_dir, /*is_chief=*/true);
  EXPECT_EQ(next.begin(0), 0) << "saves would be due more often";
}

TEST_F(RunOnSlowDisk, EndsWithTheErrorThatCameMeanwhile) {
  with.checkpoint_timeout = 0.05;
  begin_save();
  expect_error([&] { checkpoints->failed(Error(Fault::data, "a bad record"), 12); }, Fault::data, "a bad record");
  EXPECT_NE(read_file(directory / "starts.json").find("a bad record"), std::string::npos);
  ASSERT_FALSE(diary.notices.empty());
  EXPECT_EQ(diary.notices[0], "the checkpoint of step 1 is waited for before the run ends: a bad record");
}

TEST_F(RunOnSlowDisk, KeepsACheckpointThatIsUnderWayAsAnErrorComes) {
  begin_save();
  disk.answer();
  checkpoints->failed(Error(Fault::data, "a bad record"), 12);
  checkpoints->report();
  EXPECT_EQ(diary.saves, std::vector<uint64_t>{1});
}

// The first message about the disk makes it respond.
class ListeningGroup : public ThreadGroup {
 public:
  ListeningGroup(MeetingPlace& place, int rank, WaitingDisk& disk) : ThreadGroup(place, rank, 2), disk_(disk) {}
  std::vector<std::string> all_gather(const std::string& mine, const char* what) override {
    const std::vector<std::string> all = ThreadGroup::all_gather(mine, what);
    if (what == std::string("disks of the checkpoints") && all[0] != "0") {
      heard = true;
      disk_.answer();
    }
    return all;
  }
  bool heard = false;

 private:
  WaitingDisk& disk_;
};

// Without the heartbeat, other ranks would consider the waiting rank lost.
TEST_F(RunOnSlowDisk, RanksHearOfADiskThatOneOfThemWaitsFor) {
  directories_of_checkpoints();
  MeetingPlace place(2);
  std::vector<std::thread> ranks;
  std::atomic<int> heard = 0;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      const auto own = make_cpu_context({.threads = 1});
      ListeningGroup both(place, rank, disk);
      ThreadCommunicator communicator(both, *own);
      Rig one(*own, both, &communicator);
      Diary silent;
      RunCheckpoints saves(with, one.trainer, both, silent, disk);
      TrainState trained;
      saves.restore(trained);
      saves.begin_steps();
      saves.step_done();
      trained.step = 1;
      saves.save_last(trained);
      heard += both.heard ? 1 : 0;
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(heard, 2);
}

}  // namespace
}  // namespace dtrain
