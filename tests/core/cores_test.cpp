// Quotas as Linux writes them, in a copy of its files.
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
