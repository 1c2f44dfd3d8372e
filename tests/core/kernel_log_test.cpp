#include "libdtrain/core/kernel_log.h"

#include <unistd.h>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(KernelLog, NamesProcessesKilledForLackOfMemory) {
  const TempDirectory directory;
  const std::string log = directory / "kmsg";
  write_file(log,
             "6,1,100,-;Killed process 7 (by hand)\n"
             "3,2,5000000000,-;Out of memory: Killed process 41 (dtrain) total-vm:1kB\n"
             " SUBSYSTEM=memory\n"
             "nonsense, Killed process 42\n"
             "3,3,9000000000,-;Memory cgroup out of memory: Killed process 42 (dtrain) total-vm:1kB\n"
             "3,4,9000000000,-;Memory cgroup out of memory: Killed process");
  EXPECT_TRUE(logs_oom_kill({41}, 5'500'000'000, log));
  EXPECT_TRUE(logs_oom_kill({1, 42}, 5'000'000'000, log));
  EXPECT_FALSE(logs_oom_kill({41}, 8'000'000'000, log)) << "before";
  EXPECT_FALSE(logs_oom_kill({7, 4, 0}, 0, log));
  EXPECT_FALSE(logs_oom_kill({}, 0, log));
  EXPECT_FALSE(logs_oom_kill({42}, 0, directory / "none"));
}

TEST(KernelLog, IsReadWithoutWaiting) { EXPECT_FALSE(logs_oom_kill({getpid()}, kernel_time())); }

}  // namespace
}  // namespace dtrain
