// Watchdog reports over time, on a simulated clock.
#include "libdtrain/distributed/watchdog.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

SteadyTime at(double seconds) {
  return SteadyTime{} + std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

CollectiveId bucket(uint64_t sequence, uint64_t step = 7) {
  return {"gradients", sequence, "bucket 2 of 3", 4096, Section::step, step};
}

// Rank 0 of three in step 7, with a timeout of 20 s: asks peers after 5 s, warns a second later, fails at 20 s.
class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() : watchdog_(0, kRanks, limits()) { watchdog_.enter(Section::step, 7); }
  static GroupOptions limits() {
    GroupOptions limits;
    limits.step_limit = 20;
    limits.evaluation_limit = 1000;
    return limits;
  }
  // State of a peer that has completed `done` collectives of the lane and, if it `waits`, is in the next one.
  static std::string state_of(int rank, uint64_t done, bool waits) {
    Watchdog peer(rank, kRanks, limits());
    peer.enter(Section::step, 7);
    for (uint64_t i = 1; i <= done; ++i) {
      peer.begin(bucket(i), at(0));
      peer.end("gradients", at(0));
    }
    if (waits) peer.begin(bucket(done + 1), at(0));
    return peer.state();
  }
  // After the queries that precede the failure.
  std::string failure_after(const std::vector<std::pair<int, std::string>>& heard) {
    watchdog_.begin(bucket(3), at(100));
    EXPECT_TRUE(watchdog_.look(at(105.1)).ask);
    EXPECT_FALSE(watchdog_.look(at(106.2)).warning.empty());
    EXPECT_TRUE(watchdog_.look(at(119.1)).ask);
    for (const auto& [rank, state] : heard) watchdog_.hear(rank, state);
    EXPECT_TRUE(watchdog_.look(at(119.9)).failure.empty());
    return watchdog_.look(at(120.1)).failure;
  }

  static const inline std::vector<std::string> kRanks = {"rank 0 on a", "rank 1 on a", "rank 2 on b"};
  Watchdog watchdog_;
};

TEST_F(WatchdogTest, SaysNothingWhileCollectivesEndInTime) {
  for (uint64_t i = 1; i <= 100; ++i) {
    watchdog_.begin(bucket(i), at(4.0 * static_cast<double>(i)));
    const Watchdog::Verdict verdict = watchdog_.look(at(4.0 * static_cast<double>(i) + 3.9));
    EXPECT_FALSE(verdict.ask);
    EXPECT_TRUE(verdict.warning.empty() && verdict.failure.empty());
    watchdog_.end("gradients", at(4.0 * static_cast<double>(i) + 3.9));
  }
  EXPECT_FALSE(watchdog_.look(at(1e6)).ask) << "nothing is under way";
}

TEST_F(WatchdogTest, AsksOnceThenWarnsOnce) {
  watchdog_.begin(bucket(3), at(100));
  EXPECT_FALSE(watchdog_.look(at(104.9)).ask);
  EXPECT_TRUE(watchdog_.look(at(105.1)).ask);
  EXPECT_FALSE(watchdog_.look(at(105.2)).ask);
  watchdog_.hear(1, state_of(1, 2, true));
  const std::string warning = watchdog_.look(at(106.1)).warning;
  EXPECT_EQ(warning,
            "waiting for gradients #3 'bucket 2 of 3', 4096 bytes, of step 7 since 6.1 s (limit 20 s): rank 2 on b did "
            "not answer: stopped, or cut off");
  EXPECT_TRUE(watchdog_.look(at(106.2)).warning.empty());
}

TEST_F(WatchdogTest, NamesWhoIsSilent) {
  const std::string failure = failure_after({{1, state_of(1, 2, true)}});
  EXPECT_TRUE(has(failure,
                  "rank 0 on a has waited 20 s for gradients #3 'bucket 2 of 3', 4096 bytes, of step 7: "
                  "rank 2 on b did not answer: stopped, or cut off; rank 0 on a was in step 7"))
      << failure;
  EXPECT_TRUE(has(failure, "\n  rank 1 on a: in step 7; its last collectives: gradients #1 ")) << failure;
}

TEST_F(WatchdogTest, NamesWhoIsBehind) {
  const std::string failure = failure_after({{1, state_of(1, 2, false)}, {2, state_of(2, 2, true)}});
  EXPECT_TRUE(has(failure, "of step 7: rank 1 on a did not reach it; rank 0")) << failure;
}

TEST_F(WatchdogTest, NamesTheSilentBeforeThoseBehind) {
  const std::string failure = failure_after({{2, state_of(2, 0, false)}});
  EXPECT_TRUE(has(failure, ": rank 1 on a did not answer: stopped, or cut off; rank 2 on b did not reach it; "))
      << failure;
}

TEST_F(WatchdogTest, SuspectsTheNetworkWhereAllAreInIt) {
  const std::string failure = failure_after({{1, state_of(1, 2, true)}, {2, state_of(2, 3, false)}});
  EXPECT_TRUE(has(failure, ": all ranks have begun it: the network between them drops messages; ")) << failure;
}

TEST_F(WatchdogTest, ForgetsWhatWasHeardBeforeTheWarning) {
  watchdog_.begin(bucket(3), at(0));
  watchdog_.look(at(5.1));
  watchdog_.hear(1, state_of(1, 2, true));
  watchdog_.hear(2, state_of(2, 2, true));
  watchdog_.look(at(6.2));
  EXPECT_TRUE(watchdog_.look(at(19.1)).ask);
  EXPECT_TRUE(has(watchdog_.look(at(20.1)).failure, ": rank 1 on a, rank 2 on b did not answer"));
}

TEST_F(WatchdogTest, GivesWhatIsUnderWayItsTimeAnewAfterASleep) {
  watchdog_.begin(bucket(3), at(0));
  EXPECT_TRUE(watchdog_.look(at(5.1)).ask);
  EXPECT_FALSE(watchdog_.look(at(6.2)).warning.empty());
  watchdog_.wake(at(100));
  EXPECT_FALSE(watchdog_.look(at(104.9)).ask);
  EXPECT_TRUE(watchdog_.look(at(105.1)).ask);
  watchdog_.wake(at(100));
  EXPECT_FALSE(watchdog_.look(at(106.2)).warning.empty()) << "since the same sleep";
  EXPECT_TRUE(has(watchdog_.look(at(120.1)).failure, "rank 0 on a has waited 20 s for"));
}

TEST(SleepDetector, FindsStopsAndSuspends) {
  using std::chrono::seconds;
  SleepDetector detector;
  EXPECT_EQ(detector.look(at(100), seconds(7)), at(100)) << "it was not there before";
  EXPECT_EQ(detector.look(at(100.2), seconds(7)), at(100));
  EXPECT_EQ(detector.look(at(101.9), seconds(7)), at(100)) << "a busy machine";
  EXPECT_EQ(detector.look(at(105), seconds(7)), at(105)) << "stopped";
  EXPECT_EQ(detector.look(at(105.2), seconds(3607)), at(105.2)) << "suspended";
  EXPECT_EQ(detector.look(at(105.4), seconds(3607)), at(105.2));
}

TEST_F(WatchdogTest, GivesEachSectionItsTime) {
  CollectiveId scores = bucket(1);
  scores.section = Section::evaluation;
  watchdog_.begin(scores, at(0));
  EXPECT_TRUE(watchdog_.look(at(999)).failure.empty());
  EXPECT_TRUE(has(watchdog_.look(at(1001)).failure, "of the evaluation after step 7: "));
}

TEST_F(WatchdogTest, WatchesLanesSideBySide) {
  watchdog_.begin(bucket(1), at(0));
  CollectiveId other = bucket(1);
  other.lane = "host";
  watchdog_.begin(other, at(15));
  watchdog_.end("gradients", at(16));
  EXPECT_TRUE(watchdog_.look(at(21)).failure.empty());
  EXPECT_TRUE(has(watchdog_.look(at(36)).failure, "for host #1"));
}

TEST_F(WatchdogTest, TellsWhoAnsweredAndWhat) {
  watchdog_.hear(1, state_of(1, 2, true));
  EXPECT_TRUE(
      watchdog_.answers().starts_with("rank 2 on b did not answer: stopped, or cut off\n  rank 1 on a: in step 7;"))
      << watchdog_.answers();
  watchdog_.hear(2, state_of(2, 2, true));
  EXPECT_TRUE(watchdog_.answers().starts_with(
      "all others answer: one is out of step, or the network drops messages\n  rank 1 on a: in step 7;"));
  watchdog_.forget();
  EXPECT_EQ(watchdog_.answers(), "rank 1 on a, rank 2 on b did not answer: stopped, or cut off");
}

TEST_F(WatchdogTest, ShowsBothSidesOfAMismatch) {
  watchdog_.begin(bucket(3), at(0));
  EXPECT_EQ(watchdog_.mismatch(bucket(3), 2, {"gradients", 3, "bucket 3 of 3", 512, Section::step, 7}),
            "ranks are out of step: rank 0 on a does gradients #3 'bucket 2 of 3', 4096 bytes, of step 7, rank 2 "
            "on b does gradients #3 'bucket 3 of 3', 512 bytes, of step 7; last collectives here: gradients #3 "
            "'bucket 2 of 3', 4096 bytes, of step 7");
}

TEST_F(WatchdogTest, SaysWhereTheTransportBroke) {
  EXPECT_EQ(watchdog_.broken("gradients", "reset"), "rank 0 on a in step 7: reset; last collectives here: none");
  watchdog_.begin(bucket(3), at(0));
  EXPECT_TRUE(has(watchdog_.broken("gradients", "reset"),
                  "rank 0 on a in gradients #3 'bucket 2 of 3', 4096 bytes, of "
                  "step 7: reset; "));
}

TEST_F(WatchdogTest, RefusesWhatIsNoState) {
  for (const std::string& state :
       {std::string(), std::string("well"), std::string("gradients\t\n\nwell"), std::string("gradients\t-1\n\nwell"),
        "gradients\t" + std::string(30, '9') + "\n\nwell", std::string("gradients 3\n\nwell"),
        std::string("gradients\t3\nwell"), "\n" + std::string(10'000, '!')})
    expect_error([&] { watchdog_.hear(1, state); }, Fault::communication,
                 "rank 1 on a sent a malformed watchdog state");
}

}  // namespace
}  // namespace dtrain
