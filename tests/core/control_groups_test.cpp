#include "libdtrain/core/control_groups.h"

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

class MemoryOfGroup : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    write_file((root / path).string(), text);
  }
  MemoryGroup found() const { return memory_group(root.path()); }

  TempDirectory root;
};

TEST_F(MemoryOfGroup, OfVersion2IsLimitedByAllGroups) {
  EXPECT_EQ(found().limit, 0u);
  write("proc/self/cgroup", "0::/pods/one\n");
  write("sys/fs/cgroup/pods/one/memory.events", "low 0\nhigh 2\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n");
  write("sys/fs/cgroup/pods/one/memory.max", "max\n");
  write("sys/fs/cgroup/pods/memory.events", "oom_kill 7\n");
  EXPECT_EQ(found().name, "pods/one");
  EXPECT_EQ(found().oom_kills, 3u);
  EXPECT_EQ(found().limit, 0u);
  write("sys/fs/cgroup/pods/memory.max", "1073741824\n");
  EXPECT_EQ(found().limit, uint64_t{1} << 30);
  write("sys/fs/cgroup/pods/one/memory.max", "536870912\n");
  EXPECT_EQ(found().limit, uint64_t{1} << 29);
}

TEST_F(MemoryOfGroup, OfAContainerIsWhereItsGroupsAreMounted) {
  write("proc/self/cgroup", "0::/../pods/that/only/the/host/sees\n");
  write("sys/fs/cgroup/memory.events", "oom_kill 1\n");
  EXPECT_EQ(found().oom_kills, 1u);
}

TEST_F(MemoryOfGroup, OfVersion1IsThatOfTheMemoryController) {
  write("proc/self/cgroup", "12:cpuset:/set\n4:memory:/jobs/one\n0::/\n");
  write("sys/fs/cgroup/memory/jobs/one/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  write("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(found().oom_kills, 5u);
  EXPECT_EQ(found().limit, 0u);
  write("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(found().limit, 4096u);
}

TEST_F(MemoryOfGroup, IsUnknownWhereTheFilesAreNotUnderstood) {
  write("proc/self/cgroup", "nonsense\n1:memory\n0::/one\n");
  write("sys/fs/cgroup/one/memory.events", "oom_kill many\n");
  write("sys/fs/cgroup/one/memory.max", "much\n");
  EXPECT_EQ(found().oom_kills, 0u);
  EXPECT_EQ(found().limit, 0u);
}

}  // namespace
}  // namespace dtrain
