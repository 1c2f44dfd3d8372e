// Notices about the cores of a process.
#include <sched.h>

#include <cstdlib>

#include "apps/cli/machine.h"
#include "apps/cli/options/machine.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

// A process on one core that is asked for three threads, with Open MPI's variables.
class CoresOfProcess : public testing::Test {
 protected:
  CoresOfProcess() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one{};
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~CoresOfProcess() override {
    sched_setaffinity(0, sizeof before_, &before_);
    for (const char* name : {kBound, kPolicy}) unsetenv(name);
  }

  std::string notice(int ranks = 1) const {
    MachineFlags machine;
    FlagSet flags("program", "", "");
    machine.declare(flags);
    flags.parse({"program", "--device=cpu", "--num_intra_threads=3"});
    std::vector<std::string> notices;
    machine.resolve(flags, {.size = ranks}, notices);
    return notices.empty() ? "" : notices.front();
  }

  static constexpr char kBound[] = "OMPI_MCA_orte_bound_at_launch", kPolicy[] = "OMPI_MCA_hwloc_base_binding_policy";

 private:
  cpu_set_t before_{};
};

TEST_F(CoresOfProcess, AdviceOnBindingIsForThoseWhomMpirunBinds) {
  if (available_cores().online == 1) {
    EXPECT_EQ(notice(), "this process may use 1 of 1 cores, 3 threads were asked for, all of the machine");
    return;
  }
  const std::string start =
      concat("this process may use 1 of ", available_cores().online, " cores, 3 threads were asked for: ");
  const std::string advice = start + "mpirun binds ranks to cores; pass --bind-to none to disable",
                    other = start + "a container, taskset or the batch system allows no more";
  EXPECT_EQ(notice(), other) << "no mpirun";
  EXPECT_EQ(notice(2), advice) << "a launcher that tells nothing";
  setenv(kPolicy, "none", 1);
  EXPECT_EQ(notice(), other);
  EXPECT_EQ(notice(2), other) << "--bind-to none was given";
  setenv(kPolicy, "core", 1);
  setenv(kBound, "1", 1);
  EXPECT_EQ(notice(), advice);
  EXPECT_EQ(notice(2), advice);
}

}  // namespace
}  // namespace dtrain::cli
