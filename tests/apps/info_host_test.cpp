// What dtrain-info advises, by copies of Linux's files.
#include "apps/info/host.h"

#include <map>

#include "apps/info/topology.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::info {
namespace {

class InfoHost : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    write_file((root / path).string(), text);
  }
  void write_good_machine() const {
    for (const char* core : {"cpu0", "cpu1"})
      write(concat("sys/devices/system/cpu/", core, "/cpufreq/scaling_governor"), "performance\n");
    write("sys/devices/system/cpu/cpufreq/boost", "1\n");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("sys/devices/system/node/node0/cpulist", "0-1\n");
    write("proc/sys/kernel/numa_balancing", "1\n");  // one node: nothing moves
    write("proc/sys/vm/swappiness", "60\n");         // without swap
    write("proc/meminfo", "MemTotal:       1000 kB\nSwapTotal:       0 kB\n");
    write("proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            1048576              1048576              files     \n"
          "Max locked memory         65536                65536                bytes     \n");
    write("proc/self/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n");
    write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    write("sys/class/net/lo/mtu", "1500\n");
    write("sys/class/net/eth0/mtu", "9001\n");
    write("sys/class/net/eth0/operstate", "up\n");
    write("sys/class/net/eth0/device/vendor", "0x1d0f\n");
  }
  std::vector<Advice> advice() const {
    return host_advice(
        [this](const char* name) {
          const auto found = variables.find(name);
          return found == variables.end() ? nullptr : found->second.c_str();
        },
        root.path());
  }
  // After the change of one file the machine has one fault, that the file shows.
  Advice after(const std::string& path, const std::string& text) const {
    write(path, text);
    const std::vector<Advice> found = advice();
    EXPECT_EQ(found.size(), 1u) << path;
    if (found.empty()) return {};
    EXPECT_EQ(found[0].where, (root / path).string());
    return found[0];
  }

  TempDirectory root;
  std::map<std::string, std::string> variables;
};

TEST_F(InfoHost, ALineSaysThatAllIsWell) {
  EXPECT_TRUE(advice().empty()) << "no files, no fault";
  write_good_machine();
  EXPECT_EQ(advice_lines(advice()), std::vector<std::string>{"host settings: nothing to advise"});
}

TEST_F(InfoHost, FindsASlowGovernor) {
  write_good_machine();
  const Advice found = after("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  EXPECT_EQ(found.found, "1 of 2 cores have the governor powersave");
  EXPECT_EQ(found.command, "cpupower frequency-set -g performance");
}

TEST_F(InfoHost, FindsWhatSlowsMemory) {
  write_good_machine();
  EXPECT_EQ(after("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n").found,
            "transparent huge pages are off");
  write_good_machine();
  write("sys/devices/system/node/node1/cpulist", "1\n");
  EXPECT_EQ(after("proc/sys/kernel/numa_balancing", "1\n").command, "sysctl -w kernel.numa_balancing=0");
  write("proc/sys/kernel/numa_balancing", "0\n");
  write("proc/meminfo", "SwapTotal:  2048 kB\n");
  EXPECT_EQ(after("proc/sys/vm/swappiness", "60\n").found, "there is swap, and the kernel uses it at swappiness 60");
  write("proc/sys/vm/swappiness", "1\n");
  EXPECT_TRUE(advice().empty());
}

TEST_F(InfoHost, FindsLowLimits) {
  write_good_machine();
  write("sys/class/infiniband/efa_0/node_type", "7\n");
  const std::string limits = "Max open files            256     1048576     files\nMax locked memory         ";
  EXPECT_EQ(after("proc/self/limits", limits + "unlimited   unlimited   bytes\n").found,
            "a process may open 256 files");
  write("proc/self/limits", limits + "65536     65536    bytes\n");
  ASSERT_EQ(advice().size(), 2u);
  EXPECT_EQ(advice()[1].command, "ulimit -l unlimited");
}

TEST_F(InfoHost, FindsSmallSharedMemoryAsContainersHaveIt) {
  write_good_machine();
  EXPECT_EQ(after("proc/self/mounts", "overlay / overlay rw 0 0\nshm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n").found,
            "/dev/shm has 64 MiB");
  write("proc/self/mounts", "shm /dev/shm tmpfs rw,size=8388608k 0 0\n");
  EXPECT_TRUE(advice().empty());
}

TEST_F(InfoHost, FindsASlowClockAndSmallPackets) {
  write_good_machine();
  EXPECT_NE(after("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n").found.find("hpet"),
            std::string::npos);
  write_good_machine();
  EXPECT_EQ(after("sys/class/net/eth0/mtu", "1500\n").command, "ip link set dev eth0 mtu 9000");
  write("sys/class/net/eth0/operstate", "down\n");
  EXPECT_TRUE(advice().empty());
}

TEST_F(InfoHost, FindsQuotasAndThreads) {
  write_good_machine();
  write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(after("proc/self/cgroup", "0::/\n").found, "a quota leaves 1 of 2 cores, by stopping threads");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  variables = {{"OMP_NUM_THREADS", "3"}, {"OMP_WAIT_POLICY", "ACTIVE"}};
  ASSERT_EQ(advice().size(), 2u);
  EXPECT_EQ(advice()[0].found, "3 threads share 2 cores");
  EXPECT_EQ(advice()[1].where, "OMP_WAIT_POLICY");
}

TEST_F(InfoHost, NonsenseIsNoFault) {
  write_good_machine();
  for (const char* path : {"proc/self/limits", "proc/self/mounts", "proc/meminfo", "proc/sys/vm/swappiness",
                           "sys/class/net/eth0/mtu", "proc/sys/kernel/numa_balancing"})
    for (const char* text : {"", "\n", "Max open files", "x y", "shm /dev/shm tmpfs size=\n"}) {
      write(path, text);
      EXPECT_TRUE(advice().empty()) << path << ": " << text;
    }
}

TEST(InfoTopology, CountsWhatIsHere) {
  const std::vector<std::string> lines = topology_lines();
  ASSERT_GE(lines.size(), 2u);
  EXPECT_NE(lines[0].find("NUMA node"), std::string::npos);
  EXPECT_TRUE(lines[1].starts_with("  node 0: cores 0")) << lines[1];
}

TEST(InfoHostProgram, EndsWellWhateverItAdvises) {
  const ProgramResult result = run_program("dtrain-info", {});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("\nmachine: "), std::string::npos) << result.out;
  EXPECT_TRUE(result.out.find("advice: ") != std::string::npos ||
              result.out.find("host settings: nothing to advise") != std::string::npos);
}

}  // namespace
}  // namespace dtrain::info
