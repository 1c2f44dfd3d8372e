// Environment variables of programs.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include <sched.h>

#include "apps/cli/environment.h"
#include "apps/cli/machine.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

// Temporarily sets an environment variable; null unsets it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const { value != nullptr ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

TEST(Environment, IsReadFromTheProcess) {
  const Variable variable("DTRAIN_JOB_ID", "of a test");
  EXPECT_STREQ(environment()("DTRAIN_JOB_ID"), "of a test");
  EXPECT_EQ(environment()("DTRAIN_NO_SUCH_VARIABLE"), nullptr);
}

TEST(Environment, AsksAGpuToBeSlowAndPlain) {
  const Variable no_sync("DTRAIN_SYNC", nullptr), no_pool("DTRAIN_POOL", nullptr);
  EXPECT_FALSE(with_environment().sync_each_launch);
  EXPECT_TRUE(with_environment().pool);
  {
    const Variable sync("DTRAIN_SYNC", "1"), pool("DTRAIN_POOL", "0");
    EXPECT_TRUE(with_environment().sync_each_launch);
    EXPECT_FALSE(with_environment().pool);
    EXPECT_EQ(with_environment({.device = 3}).device, 3);
  }
  const Variable sync("DTRAIN_SYNC", "0"), pool("DTRAIN_POOL", "1");
  EXPECT_FALSE(with_environment().sync_each_launch);
  EXPECT_TRUE(with_environment().pool);
}

TEST(Environment, LowersTheInstructionSet) {
  const Variable none("DTRAIN_CPU_ISA", nullptr);
  EXPECT_FALSE(with_environment(CpuOptions{}).isa);
  EXPECT_EQ(Machine().make_context()->isa(), best_cpu_isa());
  {
    const Variable lowered("DTRAIN_CPU_ISA", "avx2");
    EXPECT_EQ(with_environment(CpuOptions{.threads = 3}).threads, 3);
    EXPECT_EQ(Machine().make_context()->isa(), CpuIsa::avx2);
    EXPECT_EQ(describe(*Machine{.threads = 2}.make_context()), "2 threads, avx2");
  }
  const Variable unknown("DTRAIN_CPU_ISA", "sse2");
  EXPECT_THROW(with_environment(CpuOptions{}), Error);
}

TEST(Environment, ForcesAConvolutionAlgorithm) {
  {
    const Variable forced("DTRAIN_CPU_CONV", "winograd");
    EXPECT_EQ(Machine().make_context()->conv_algorithm(), "winograd");
  }
  const Variable unknown("DTRAIN_CPU_CONV", "fft");
  EXPECT_THROW(Machine().make_context(), Error);
}

TEST(Environment, AsksForNoInstructionSetThatTheProcessorLacks) {
  if (best_cpu_isa() == CpuIsa::amx) GTEST_SKIP() << "SKIPPED: this processor has all sets";
  const Variable higher("DTRAIN_CPU_ISA", "amx");
  EXPECT_THROW(with_environment(CpuOptions{}), Error);
  EXPECT_THROW(make_cpu_context({.threads = 1, .isa = CpuIsa::amx}), Error);
}

// The kernel truncates process names to 15 characters.
void expect_to_keep_its_name(const std::string& path, const std::string& name) {
  SCOPED_TRACE(path);
  const Program program(path, {"--model=trivial", "--device=cpu", "--batch_size=1", "--num_batches=1000000"});
  ASSERT_TRUE(program.wait_for("Running warm up"));
  const std::string process = concat("/proc/", program.pid());
  EXPECT_NE(read_file(process + "/environ").find("OMP_WAIT_POLICY=passive"), std::string::npos) << "not started anew";
  EXPECT_EQ(read_file(process + "/comm"), name + "\n");
}

TEST(WaitPolicy, LeavesAProgramItsName) {
  const Variable policy("OMP_WAIT_POLICY", nullptr), spins("GOMP_SPINCOUNT", nullptr);
  const TempDirectory folder;
  const std::filesystem::path program = std::filesystem::absolute(bin_dir() / "dtrain-cnn-benchmarks");
  const std::filesystem::path link = folder / "train";
  std::filesystem::create_symlink(program, link);
  expect_to_keep_its_name(program.string(), "dtrain-cnn-benc");
  expect_to_keep_its_name(link.string(), "train");
  const Variable here("DTRAIN_BIN_DIR", ".");
  const std::filesystem::path directory = std::filesystem::current_path();
  std::filesystem::current_path(program.parent_path());
  expect_to_keep_its_name("dtrain-cnn-benchmarks", "dtrain-cnn-benc");
  std::filesystem::current_path(directory);
}

// Result of a training with the thread count of `settings` and `flags`.
ProgramResult result_of_training(std::vector<std::string> settings, const std::vector<std::string>& flags) {
  settings.insert(settings.begin(), {"-u", "OMP_NUM_THREADS"});
  settings.push_back((std::filesystem::absolute(bin_dir()) / "dtrain-cnn-benchmarks").string());
  settings.insert(settings.end(), {"--model=lenet", "--device=cpu", "--batch_size=8", "--num_warmup_batches=0",
                                   "--num_batches=2", "--display_every=1"});
  settings.insert(settings.end(), flags.begin(), flags.end());
  Program program("/usr/bin/env", settings);
  EXPECT_TRUE(program.wait_for("total images/sec")) << program.output();
  if (testing::Test::HasFailure()) program.signal(SIGKILL);
  return program.finish();
}

// Last column of the step lines.
std::vector<std::string> losses_in(const std::string& log) {
  std::vector<std::string> losses;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.find("\timages/sec: ") != std::string::npos) losses.push_back(line.substr(line.rfind('\t') + 1));
  return losses;
}

TEST(Threads, AreAsManyAsOpenMpGrants) {
  const ProgramResult limited = result_of_training({"OMP_THREAD_LIMIT=1"}, {"--num_intra_threads=2"});
  EXPECT_EQ(limited.code, 0) << limited.err;
  EXPECT_NE(limited.err.find("OpenMP grants 1 of 2 compute threads (OMP_THREAD_LIMIT is 1)"), std::string::npos)
      << limited.err;
  const ProgramResult alone = result_of_training({}, {"--num_intra_threads=1"});
  EXPECT_EQ(losses_in(limited.out).size(), 2u) << limited.out;
  EXPECT_EQ(losses_in(limited.out), losses_in(alone.out)) << "other sums than those of one thread";
}

TEST(Threads, ShareTheCoresThatTheProcessIsBoundTo) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(result_of_training({}, {}).code, 0);
  EXPECT_EQ(result_of_training({"OMP_THREAD_LIMIT=1"}, {}).code, 0);
  EXPECT_EQ(result_of_training({}, {"--num_intra_threads=2"}).code, 0);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace dtrain::cli
