// CPU quotas and partitions of cores, on copies of Linux's files.
#include "libdtrain/core/cores.h"

#include <sched.h>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

class CpuQuota : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    write_file((root / path).string(), text);
  }
  int quota() const { return cpu_quota(root.path()); }

  TempDirectory root;
};

TEST_F(CpuQuota, OfVersion2IsTheLeastOfAllGroups) {
  EXPECT_EQ(quota(), 0);
  write("proc/self/cgroup", "0::/pods/one\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/pods/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota(), 8);
  write("sys/fs/cgroup/pods/one/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 2);
  write("sys/fs/cgroup/pods/one/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), 1);
}

TEST_F(CpuQuota, OfAContainerIsWhereItsGroupsAreMounted) {
  write("proc/self/cgroup", "0::/../pods/that/only/the/host/sees\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CpuQuota, OfVersion1IsThatOfTheCpuController) {
  write("proc/self/cgroup", "12:cpuset:/set\n4:cpu,cpuacct:/jobs/one\n0::/\n");
  write("sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/jobs/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "20000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CpuQuota, IsNoneWhereTheFilesAreNotUnderstood) {
  write("proc/self/cgroup", "nonsense\n1:cpu\n0::/one\n");
  write("sys/fs/cgroup/one/cpu.max", "much\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/one/cpu.max", "100000\n");
  EXPECT_EQ(quota(), 0);
}

// Two nodes of four physical cores with two threads each, in Linux's numbering: second threads last.
class SplitCores : public testing::Test {
 protected:
  SplitCores() {
    for (int core = 0; core < 16; ++core) {
      const std::filesystem::path folder = root / ("sys/devices/system/cpu/cpu" + std::to_string(core));
      std::filesystem::create_directories(folder / "topology");
      std::filesystem::create_directories(folder / ("node" + std::to_string(core % 8 / 4)));
      write_file((folder / "topology/physical_package_id").string(), std::to_string(core % 8 / 4) + "\n");
      write_file((folder / "topology/core_id").string(), std::to_string(core % 4) + "\n");
      all.push_back(core);
    }
  }
  using Split = std::vector<std::vector<int>>;
  Split split(const std::vector<int>& cores, const std::vector<int>& parts) const {
    return split_cores(cores, parts, root.path());
  }

  TempDirectory root;
  std::vector<int> all;
};

TEST_F(SplitCores, KeepsThreadsOfACoreTogether) {
  EXPECT_EQ(split(all, {-1}), (Split{{0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}}));
  EXPECT_EQ(split(all, {-1, -1}), (Split{{0, 8, 1, 9, 2, 10, 3, 11}, {4, 12, 5, 13, 6, 14, 7, 15}}));
  EXPECT_EQ(split(all, {-1, -1, -1}), (Split{{0, 8, 1, 9}, {2, 10, 3, 11, 4, 12}, {5, 13, 6, 14, 7, 15}}));
}

TEST_F(SplitCores, GivesThreadsWhereCoresDoNotSuffice) {
  EXPECT_EQ(split({0, 8, 4}, {-1, -1, -1}), (Split{{0}, {8}, {4}}));
  EXPECT_EQ(split({0, 8}, {-1, -1, -1}), Split{});
}

TEST_F(SplitCores, BySocketEachPhysicalCoreCountsOnce) {
  EXPECT_EQ(cores_by_socket(all, root.path()), (Split{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(cores_by_socket({13, 9, 5, 2}, root.path()), (Split{{2, 9}, {5}}));
  EXPECT_EQ(cores_by_socket({}, root.path()), Split{});
}

TEST_F(SplitCores, GivesEachPartCoresOfItsNode) {
  EXPECT_EQ(split(all, {1, 0, 1}), (Split{{4, 12, 5, 13}, {0, 8, 1, 9, 2, 10, 3, 11}, {6, 14, 7, 15}}));
  // The container has one core of the node that two parts prefer.
  EXPECT_EQ(split({0, 1, 2, 4}, {1, 0, 1}), (Split{{0}, {1}, {2, 4}}));
  EXPECT_EQ(split({0, 1, 4, 5}, {1, -1}), (Split{{0, 1}, {4, 5}}));
}

TEST_F(SplitCores, DoesWithoutATopology) {
  EXPECT_EQ(split_cores({3, 5, 6, 7}, {-1, -1}, root / "nothing"), (Split{{3, 5}, {6, 7}}));
}

TEST_F(SplitCores, KnowsTheNodeOfADevice) {
  const std::filesystem::path folder = root / "sys/bus/pci/devices/0000:1a:00.0";
  std::filesystem::create_directories(folder);
  write_file((folder / "numa_node").string(), "1\n");
  EXPECT_EQ(numa_node_of_device("0000:1A:00", root.path()), 1);
  EXPECT_EQ(numa_node_of_device("0000:1b:00", root.path()), -1);
}

TEST(UsableCores, AreThoseThatTheProcessIsBoundTo) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace dtrain
