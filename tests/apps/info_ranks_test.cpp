// What dtrain-info --ranks finds to be off.
#include "apps/info/ranks.h"

#include "tests/testing.h"

namespace dtrain::info {
namespace {

std::vector<RankFacts> four_ranks_on_two_hosts() {
  std::vector<RankFacts> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back({.name = concat("rank ", rank, " on host-", rank / 2),
                     .host = concat("host-", rank / 2),
                     .cores = {2 * (rank % 2), 2 * (rank % 2) + 1},
                     .bound = true,
                     .numa_nodes = "0",
                     .device = "GPU",
                     .gpu = concat("0000:1", rank % 2, ":00"),
                     .versions = {{"MPI", "Open MPI v4.1.4"}}});
  return ranks;
}

std::vector<std::string> found_in(const std::vector<RankFacts>& ranks) { return what_is_off(ranks, {}); }

TEST(InfoRanks, FindsNothingWhereAllIsWell) {
  EXPECT_EQ(found_in(four_ranks_on_two_hosts()), std::vector<std::string>{});
}

TEST(InfoRanks, FindsTwoRanksWithOneGpu) {
  std::vector<RankFacts> ranks = four_ranks_on_two_hosts();
  ranks[3].gpu = ranks[2].gpu;
  EXPECT_EQ(found_in(ranks),
            std::vector<std::string>{"rank 2 on host-1 and rank 3 on host-1 have the same GPU, 0000:10:00"});
}

TEST(InfoRanks, FindsARankWithoutAGpu) {
  std::vector<RankFacts> ranks = four_ranks_on_two_hosts();
  ranks[1].device = "no GPU: this machine has 1, numbered from 0";
  ranks[1].gpu = "";
  EXPECT_EQ(found_in(ranks), std::vector<std::string>{"rank 1 on host-0: no GPU: this machine has 1, numbered from 0"});
}

TEST(InfoRanks, FindsRanksThatAreBoundToTheSameCores) {
  std::vector<RankFacts> ranks = four_ranks_on_two_hosts();
  ranks[1].cores = {0, 1};
  EXPECT_EQ(found_in(ranks), std::vector<std::string>{"rank 0 on host-0 and rank 1 on host-0 are bound to the same "
                                                      "core, 0: start them with --bind-to none"});
  for (RankFacts& rank : ranks) rank.bound = false;  // all of the container's
  EXPECT_EQ(found_in(ranks), std::vector<std::string>{});
}

TEST(InfoRanks, FindsVersionsThatDiffer) {
  std::vector<RankFacts> ranks = four_ranks_on_two_hosts();
  ranks[2].versions["MPI"] = "Open MPI v5.0.1";
  ranks[3].versions.clear();
  EXPECT_EQ(found_in(ranks),
            (std::vector<std::string>{"rank 0 on host-0 has MPI Open MPI v4.1.4, rank 2 on host-1 has Open MPI v5.0.1",
                                      "rank 0 on host-0 has MPI Open MPI v4.1.4, rank 3 on host-1 has none"}));
}

TEST(InfoRanks, ComparesWithWhatIsExpected) {
  EXPECT_EQ(what_is_off(four_ranks_on_two_hosts(), {.job = {.expect_ranks = 8}, .expect_hosts = 3}),
            (std::vector<std::string>{"expected 8 ranks, found 4", "expected 3 hosts, found 2"}));
  EXPECT_EQ(what_is_off(four_ranks_on_two_hosts(), {.job = {.expect_ranks = 4}, .expect_hosts = 2}),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace dtrain::info
