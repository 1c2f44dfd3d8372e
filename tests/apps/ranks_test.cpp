// Consistency check of ranks at start.
#include "apps/cli/rank_table.h"
#include "libdtrain/train/agreement.h"
#include "tests/distributed/thread_communicator.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

// Message of check_equal per rank, with settings[i] on rank i; empty if equal.
std::vector<std::string> verdicts(const std::vector<RankSettings>& settings) {
  std::vector<std::string> said(settings.size());
  on_ranks(
      static_cast<int>(settings.size()), [] { return make_cpu_context({.threads = 1}); },
      [&](Context&, ThreadCommunicator& communicator) {
        const auto rank = static_cast<size_t>(communicator.rank());
        try {
          check_equal(communicator.group(), settings[rank], "flags");
        } catch (const Error& error) {
          EXPECT_EQ(error.fault(), Fault::config);
          said[rank] = error.what();
        }
      });
  return said;
}

TEST(Agreement, EqualRanksAgree) {
  const RankSettings settings = {{"--model", "resnet50"}, {"--weights", "strange \n\t\xff text"}};
  EXPECT_EQ(verdicts({settings, settings, settings}), std::vector<std::string>(3));
  EXPECT_EQ(verdicts({settings}), std::vector<std::string>(1));
}

TEST(Agreement, NamesTheFirstDifferenceOnAllRanks) {
  const RankSettings a = {{"version", "1"}, {"--batch_size", "12"}, {"--model", "a"}};
  const RankSettings b = {{"version", "1"}, {"--batch_size", "16"}, {"--model", "b"}};
  const std::string expected =
      "the ranks have different settings: --batch_size is '12' on rank 0 on here, rank 2 on here, and '16' on rank 1 "
      "on "
      "here";
  EXPECT_EQ(verdicts({a, b, a}), std::vector<std::string>(3, expected));
}

TEST(Agreement, NamesTheFirstDifferingLineOfMany) {
  std::string files, others;
  for (int i = 0; i < 1000; ++i) {
    files += concat("train-", i, ": 7 bytes\n");
    others += concat("train-", i, i == 17 ? ": 8 bytes\n" : ": 7 bytes\n");
  }
  EXPECT_EQ(
      verdicts({{{"the data set", files}}, {{"the data set", others}}})[0],
      "the ranks have different settings: the data set is 'train-17: 7 bytes' on rank 0 on here, and 'train-17: 8 "
      "bytes' on rank 1 on here");
  EXPECT_EQ(
      verdicts({{{"the data set", files + "more\n"}}, {{"the data set", files}}})[1],
      "the ranks have different settings: the data set is 'more' on rank 0 on here, and 'nothing' on rank 1 on here");
}

TEST(Agreement, ASettingThatOneRankDoesNotKnowIsADifference) {
  const auto said = verdicts({{{"--a", "1"}}, {{"--a", "1"}, {"--new", "2"}}});
  EXPECT_NE(said[0].find("--new is (not known) on rank 0 on here, and '2' on rank 1 on here"), std::string::npos)
      << said[0];
}

TEST(Agreement, NamesSomeOfMany) {
  std::vector<RankSettings> settings(7, {{"--a", "1"}});
  settings[0][0].second = "2";
  EXPECT_NE(
      verdicts(settings)[6].find("'1' on rank 1 on here, rank 2 on here, rank 3 on here, rank 4 on here and 2 more"),
      std::string::npos);
}

TEST(RankTable, HasALineForEachRank) {
  on_ranks(
      2, [] { return make_cpu_context({.threads = 1}); },
      [](Context&, ThreadCommunicator& communicator) {
        const std::vector<std::string> lines = rank_table(communicator.group(), {});
        ASSERT_EQ(lines.size(), 4u);
        EXPECT_EQ(lines[0], "Ranks:       2 on 1 host");
        EXPECT_TRUE(lines[1].starts_with("  rank  host  device  NUMA")) << lines[1];
        EXPECT_TRUE(lines[1].ends_with("transport")) << lines[1];
        EXPECT_TRUE(lines[3].starts_with("  1     here  CPU     ")) << lines[3];
        EXPECT_TRUE(lines[3].ends_with("  threads")) << lines[3];
      });
}

TEST(RankTable, ListsNumbersAsLinuxDoes) {
  EXPECT_EQ(list_of({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(list_of({5}), "5");
  EXPECT_EQ(list_of({}), "-");
}

}  // namespace
}  // namespace dtrain::cli
