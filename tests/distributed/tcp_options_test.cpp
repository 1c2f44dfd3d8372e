// Environment variables of the TCP rendezvous.
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "tests/distributed/ranks.h"

namespace dtrain {
namespace {

// An environment with only these variables.
Environment environment_of(const std::map<std::string, const char*>& values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second;
  };
}

TEST(TcpOptions, FollowTheLaunchersVariables) {
  std::map<std::string, const char*> values = {{"SLURM_PROCID", "3"},
                                               {"SLURM_STEP_NUM_TASKS", "8"},
                                               {"SLURM_JOB_ID", "123456"},
                                               {"SLURM_STEP_NODELIST", "gpu[003-007,010]-ib,other9"}};
  const auto options = [&] { return tcp_options_from(environment_of(values)); };
  EXPECT_EQ(options().rank, 3);
  EXPECT_EQ(options().size, 8);
  EXPECT_EQ(options().address, "gpu003-ib");
  EXPECT_EQ(options().port, 23456);
  EXPECT_EQ(options().job, "123456");
  values["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(options().address, "127.0.0.1") << "a step on one host";
  values["SLURM_STEP_NUM_NODES"] = "6";
  EXPECT_EQ(options().address, "gpu003-ib");
  EXPECT_TRUE(launcher_rank(environment_of(values)).without_mpi);
  values["PMIX_NAMESPACE"] = "slurm.pmix.123456.0";
  EXPECT_FALSE(launcher_rank(environment_of(values)).without_mpi) << "srun --mpi=pmix";
  values.insert({{"MASTER_ADDR", "head"}, {"MASTER_PORT", "777"}});
  EXPECT_EQ(options().address, "head");
  EXPECT_EQ(options().port, 777);
  values.insert({{"DTRAIN_MASTER_ADDR", "10.0.0.1"}, {"DTRAIN_MASTER_PORT", "999"}});
  EXPECT_EQ(options().address, "10.0.0.1");
  EXPECT_EQ(options().port, 999);
}

TEST(TcpOptions, FollowTorchrunAndPyTorchJob) {
  std::map<std::string, const char*> values = {
      {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "run-master-0"}, {"MASTER_PORT", "23456"}};
  const auto options = [&] { return tcp_options_from(environment_of(values)); };
  EXPECT_EQ(options().rank, 1);
  EXPECT_EQ(options().size, 3);
  EXPECT_EQ(options().address, "run-master-0");
  EXPECT_EQ(options().port, 23456);
  EXPECT_TRUE(launcher_rank(environment_of(values)).without_mpi);
  EXPECT_EQ(launcher_rank(environment_of(values)).local_rank, -1);
  values.insert({{"LOCAL_RANK", "1"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RUN_ID", "a"}});
  EXPECT_EQ(options().port, 23457) << "torchrun listens on the other";
  EXPECT_EQ(options().job, "a");
  EXPECT_EQ(launcher_rank(environment_of(values)).local_rank, 1);
  values.insert({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(launcher_rank(environment_of(values)).source, "OMPI_COMM_WORLD_RANK");
  EXPECT_FALSE(launcher_rank(environment_of(values)).without_mpi);
  values = {{"RANK", "captain"}};
  EXPECT_EQ(launcher_rank(environment_of(values)).size, 0) << "a variable of somebody else";
}

TEST(TcpOptions, NameWhatIsMissing) {
  std::map<std::string, const char*> values;
  const auto expect_refusal = [&](const char* part) {
    expect_error([&] { tcp_options_from(environment_of(values)); }, Fault::config, part);
  };
  expect_refusal("set DTRAIN_RANK and DTRAIN_SIZE");
  values = {{"DTRAIN_RANK", "1"}, {"DTRAIN_SIZE", "2"}};
  expect_refusal("Set DTRAIN_MASTER_ADDR");
  values["MASTER_ADDR"] = "head";
  expect_refusal("set DTRAIN_MASTER_PORT");
  values["MASTER_PORT"] = "70000";
  expect_refusal("MASTER_PORT=70000: expected a port");
}

TEST(TcpOptions, TakeASecretFromTheEnvironmentOrAFile) {
  const TempDirectory folder;
  const std::string path = (folder / "secret").string(), secret = "0123456789abcdef", other = "fedcba9876543210";
  std::map<std::string, std::string> values = {{"DTRAIN_JOB_SECRET", secret}, {"DTRAIN_BIND_ADDR", "10.1.2.3"}};
  const auto protect_by = [&] {
    TcpOptions tcp;
    protect(tcp, [&](const char* name) { return values.contains(name) ? values[name].c_str() : nullptr; });
    return tcp;
  };
  const auto expect_refusal = [&](const std::string& part) { expect_error(protect_by, Fault::config, part); };
  EXPECT_EQ(protect_by().secret, secret);
  EXPECT_EQ(protect_by().bind_address, "10.1.2.3");
  EXPECT_FALSE(protect_by().trust_network);
  values["DTRAIN_JOB_SECRET"] = "too short";
  expect_refusal("DTRAIN_JOB_SECRET: a secret of 9 characters can be guessed");
  values = {{"DTRAIN_JOB_SECRET_FILE", path}};
  expect_refusal("secret: No such file or directory");
  std::ofstream(path) << other << "\n";
  chmod(path.c_str(), 0640);
  expect_refusal("others than its owner may read or write it");
  chmod(path.c_str(), 0600);
  EXPECT_EQ(protect_by().secret, other);
  values["DTRAIN_JOB_SECRET"] = secret;
  expect_refusal("are both set");
  values = {{"DTRAIN_JOB_SECRET_FILE", (folder / "fifo").string()}};
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  expect_refusal("not a file to read");
  values = {{"DTRAIN_TRUST_NETWORK", "yes"}};
  expect_refusal("DTRAIN_TRUST_NETWORK=yes: expected 0 or 1");
  values = {{"DTRAIN_TRUST_NETWORK", "1"}};
  EXPECT_TRUE(protect_by().trust_network);
}

TEST(TcpOptions, TakeTheFirstHostOfAList) {
  const std::vector<std::pair<const char*, const char*>> lists = {
      {"n1", "n1"}, {"n1,n2", "n1"}, {"n[1,3]", "n1"}, {"n[08-11]", "n08"}, {"r[1-2]n[5-6]x,y", "r1n5x"}};
  for (const auto& [list, host] : lists) {
    const Environment environment = environment_of(
        {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_JOB_ID", "1"}, {"SLURM_STEP_NODELIST", list}});
    EXPECT_EQ(tcp_options_from(environment).address, host);
  }
}

}  // namespace
}  // namespace dtrain
