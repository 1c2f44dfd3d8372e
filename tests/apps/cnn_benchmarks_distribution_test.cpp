// Resolution of distribution flags and variables.
#include <cstdlib>

#include "apps/cli/options/all_reduce_spec.h"
#include "apps/cli/options/horovod.h"
#include "apps/cnn_benchmarks/settings.h"
#include "tests/testing.h"

namespace dtrain::cnn_benchmarks {
namespace {

using Variables = std::map<std::string, std::string>;

struct Resolved {
  Settings settings;
  std::vector<std::string> taken_over;
  std::string notices;  // all in one
};

Resolved resolve(std::vector<std::string> arguments, int ranks = 1, const Variables& variables = {}) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  Flags values;
  cli::FlagSet flags{"dtrain-cnn-benchmarks", "", ""};
  values.declare(flags);
  arguments.insert(arguments.begin(), {"program", "--device=cpu"});
  flags.parse(arguments);
  std::vector<std::string> taken_over = cli::apply_horovod(variables, flags);
  Resolved result{make_settings(values, flags, {.size = ranks}), std::move(taken_over), ""};
  for (const auto& notices : {flags.notices(), result.taken_over, result.settings.notices})
    for (const std::string& notice : notices) result.notices += notice + "\n";
  return result;
}

cli::Distribution distribution(const std::vector<std::string>& arguments, int ranks = 2) {
  const Settings settings = resolve(arguments, ranks).settings;
  return {settings.shape.gradients, settings.shape.buckets, settings.packs, settings.shape.tune_buckets,
          settings.independent};
}

std::string refusal(const std::vector<std::string>& arguments, int ranks = 1, const Variables& variables = {}) {
  try {
    resolve(arguments, ranks, variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::config);
    return error.what();
  }
  return "";
}

TEST(Distribution, Defaults) {
  const cli::Distribution result = distribution({});
  EXPECT_EQ(result.gradients.wire, DType::f32);
  EXPECT_EQ(result.gradients.algorithm, "auto");
  EXPECT_EQ(result.buckets.bytes, 25 << 20);
  EXPECT_EQ(result.buckets.last_bytes, 1 << 20);
  EXPECT_EQ(result.packs, 0);
  EXPECT_FALSE(result.autotune);
  EXPECT_FALSE(result.independent);
}

TEST(Distribution, OurOwnFlags) {
  const cli::Distribution result = distribution({"--bucket_mb=0.5", "--last_bucket_mb=0.25", "--wire_precision=bf16",
                                                 "--all_reduce_algorithm=doubling", "--autotune_buckets"});
  EXPECT_EQ(result.gradients.wire, DType::bf16);
  EXPECT_EQ(result.gradients.algorithm, "doubling");
  EXPECT_EQ(result.buckets.bytes, 512 << 10);
  EXPECT_EQ(result.buckets.last_bytes, 256 << 10);
  EXPECT_TRUE(result.autotune);
  EXPECT_EQ(distribution({"--wire_precision=fp16"}).gradients.wire, DType::f16);
  EXPECT_TRUE(contains(refusal({"--bucket_mb=0"}), "--bucket_mb"));
  EXPECT_TRUE(
      contains(refusal({"--all_reduce_algorithm=tree"}), "for NCCL only; CPUs have auto, ring, direct, hierarchical"));
}

TEST(Distribution, AllUpdateModesAreAllReduce) {
  for (const char* form : {"parameter_server", "replicated", "distributed_replicated", "distributed_all_reduce",
                           "collective_all_reduce"}) {
    const std::string flag = std::string("--variable_update=") + form;
    const Resolved several = resolve({flag}, 2);
    EXPECT_TRUE(contains(several.notices, flag + ": ")) << several.notices;
    EXPECT_FALSE(several.settings.independent);
    EXPECT_FALSE(contains(resolve({flag}, 1).notices, "variable_update")) << form;
  }
  EXPECT_TRUE(contains(resolve({}, 2).notices, "synchronous, without parameter servers"));
  EXPECT_FALSE(contains(resolve({"--variable_update=horovod"}, 2).notices, "variable_update"));
  EXPECT_TRUE(distribution({"--variable_update=independent"}).independent);
}

TEST(Distribution, StaleUpdatesAreRefusedWithTheReason) {
  for (const char* flag : {"--nocross_replica_sync", "--variable_consistency=relaxed", "--staged_vars"})
    EXPECT_TRUE(contains(refusal({flag}), "synchronous data-parallel SGD")) << flag << ": " << refusal({flag});
}

TEST(AllReduceSpec, IsReadByItsGrammar) {
  EXPECT_TRUE(cli::parse_all_reduce_spec("").empty());
  const auto one = cli::parse_all_reduce_spec("psgpu#4");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].algorithm, "psgpu");
  EXPECT_EQ(one[0].shards, 4);
  EXPECT_EQ(one[0].limit, -1);
  const auto three = cli::parse_all_reduce_spec("pscpu:32k:nccl/rechd#2:1M:nccl/xring");
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[0].limit, 32 << 10);
  EXPECT_EQ(three[1].algorithm, "nccl/rechd");
  EXPECT_EQ(three[1].shards, 2);
  EXPECT_EQ(three[1].limit, 1 << 20);
  EXPECT_EQ(three[2].algorithm, "nccl/xring");
  EXPECT_EQ(three[2].limit, -1);
  for (const char* known : {"nccl", "nccl/pscpu", "xring", "pscpu", "pscpu/pscpu", "collective"})
    EXPECT_EQ(cli::parse_all_reduce_spec(known)[0].algorithm, known);
}

TEST(AllReduceSpec, RefusesSyntaxErrors) {
  for (const char* spec : {"xring#", "xring#0", "xring#x", "xring#2#2", "pscpu:32k", "pscpu::xring", "pscpu:x:xring",
                           "pscpu:0:xring", "pscpu:2G:xring", "pscpu:1M:xring:32k:nccl", ":"})
    EXPECT_TRUE(contains(refusal({std::string("--all_reduce_spec=") + spec}), ": expected a")) << spec;
}

TEST(AllReduceSpec, AnUnknownAlgorithmNamesTheKnown) {
  EXPECT_TRUE(contains(refusal({"--all_reduce_spec=star"}), "'star': expected one of nccl, nccl/xring, "));
}

TEST(AllReduceSpec, MapsToAnAlgorithm) {
  EXPECT_EQ(distribution({"--all_reduce_spec=xring"}).gradients.algorithm, "ring");
  EXPECT_EQ(distribution({"--all_reduce_spec=nccl/xring"}).gradients.algorithm, "auto");
  EXPECT_EQ(distribution({"--all_reduce_spec=pscpu:32k:xring"}).gradients.algorithm, "auto");
  EXPECT_EQ(distribution({"--all_reduce_spec=xring", "--all_reduce_algorithm=doubling"}).gradients.algorithm,
            "doubling");
  EXPECT_TRUE(
      contains(resolve({"--all_reduce_spec=xring#2"}).notices, "--all_reduce_spec=xring#2: uses an all-reduce"));
}

TEST(AllReduceSpec, NcclRunsOnASingleGpuToo) {
  const auto even_alone = [](const std::string& spec, bool gpu) {
    Flags values;
    cli::FlagSet flags{"dtrain-cnn-benchmarks", "", ""};
    values.declare(flags);
    flags.parse({"program", "--all_reduce_spec=" + spec});
    std::vector<std::string> notices;
    return values.distribution.resolve(flags, values.ranks, 1, {.gpu = gpu}, notices).gradients.even_alone;
  };
  EXPECT_TRUE(even_alone("nccl", true));
  EXPECT_TRUE(even_alone("pscpu:32k:nccl/xring", true));
  EXPECT_FALSE(even_alone("nccl", false));
  EXPECT_FALSE(even_alone("xring", true));
  EXPECT_FALSE(even_alone("", true));
}

TEST(Distribution, Repacking) {
  EXPECT_EQ(distribution({"--gradient_repacking=8"}).packs, 8);
  EXPECT_TRUE(contains(resolve({"--gradient_repacking=8"}).notices, "--gradient_repacking=8"));
  EXPECT_TRUE(contains(refusal({"--gradient_repacking=8", "--bucket_mb=4"}), "at most one"));
  EXPECT_TRUE(contains(refusal({"--gradient_repacking=8", "--autotune_buckets"}), "at most one"));
}

TEST(Distribution, NamesReplacementsInNotices) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--agg_small_grads_max_bytes=1024", "--bucket_mb"},  {"--agg_small_grads_max_group=20", "--bucket_mb"},
      {"--allreduce_merge_scope=4", "--bucket_mb"},         {"--network_topology=gcp_v100", "NCCL finds the links"},
      {"--server_protocol=grpc+verbs", "the launcher and"}, {"--horovod_device=gpu", "on the CPUs"},
      {"--hierarchical_copy", "NCCL finds the links"},      {"--ps_hosts=a:1,b:1", "no parameter server"},
  };
  for (const auto& [flag, part] : cases) {
    EXPECT_TRUE(contains(resolve({flag}, 2).notices, part)) << flag << ": " << resolve({flag}, 2).notices;
    EXPECT_FALSE(contains(resolve({}, 2).notices, part)) << part;
  }
}

TEST(Jobs, WorkersAreNumbered) {
  EXPECT_EQ(refusal({"--job_name=worker", "--worker_hosts=a:2222,b:2222", "--task_index=1"}, 2), "");
  EXPECT_EQ(refusal({"--job_name=worker", "--worker_hosts=a:2222", "--ps_hosts=a:2221"}), "");
  EXPECT_TRUE(contains(refusal({"--job_name=worker"}), "needs --worker_hosts"));
  EXPECT_TRUE(contains(refusal({"--worker_hosts=a,b", "--task_index=2"}, 2), "names 2 workers, counted from 0"));
}

TEST(Jobs, WorkersMeetAtTheFirst) {
  cli::DistributionFlags flags;
  flags.worker_hosts = {"a:2222"};
  EXPECT_FALSE(flags.workers().tcp());
  flags.worker_hosts = {"a:2222", "[::1]:2223"};
  flags.task_index = 1;
  const TcpOptions worker = flags.workers().tcp().value();
  EXPECT_EQ(worker.rank, 1);
  EXPECT_EQ(worker.size, 2);
  EXPECT_EQ(worker.address, "a");
  EXPECT_EQ(worker.port, 2222);
  EXPECT_EQ(worker.own_address, "::1");
  EXPECT_EQ(worker.own_port, 2223);
  flags.task_index = 2;
  EXPECT_THROW(flags.workers(), Error);
}

TEST(Jobs, WorkersHaveARankForEachDevice) {
  cli::DistributionFlags flags;
  EXPECT_EQ(flags.workers().local_job(4).size, 4);
  flags.worker_hosts = {"a:2222", "b:2222"};
  flags.task_index = 1;
  const cli::LocalJob job = flags.workers().local_job(4);
  EXPECT_EQ(job.count, 4);
  EXPECT_EQ(job.first, 4);
  EXPECT_EQ(job.size, 8);
  const TcpOptions third = flags.workers().tcp({.rank = 2, .count = 4}).value();
  EXPECT_EQ(third.rank, 6);
  EXPECT_EQ(third.size, 8);
  EXPECT_EQ(third.own_port, 0);
  EXPECT_NE(third.members, flags.workers().tcp({.rank = 1, .count = 2})->members);
}

TEST(Jobs, ServersAndControllersAreNotNeeded) {
  const auto reason = [](const char* job) {
    cli::DistributionFlags flags;
    flags.job_name = job;
    return flags.reason_to_wait();
  };
  EXPECT_TRUE(contains(reason("ps").value_or(""), "--job_name=ps: workers all-reduce gradients"));
  EXPECT_TRUE(reason("controller"));
  EXPECT_FALSE(reason("worker"));
  EXPECT_FALSE(reason(""));
  setenv("DTRAIN_RANK", "1", 1);
  setenv("DTRAIN_SIZE", "3", 1);
  EXPECT_THROW(reason("ps"), Error);
  EXPECT_THROW(cli::Workers().local_job(2), Error);
  unsetenv("DTRAIN_RANK");
  unsetenv("DTRAIN_SIZE");
}

TEST(HorovodVariables, SetFlags) {
  const Resolved result = resolve({}, 2,
                                  {{"HOROVOD_FUSION_THRESHOLD", "16777216"},
                                   {"HOROVOD_AUTOTUNE", "1"},
                                   {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90"}});
  EXPECT_EQ(result.settings.shape.buckets.bytes, 16 << 20);
  EXPECT_TRUE(result.settings.shape.tune_buckets);
  EXPECT_EQ(result.settings.flags.ranks.job.collective_timeout, 90);
  EXPECT_EQ(result.taken_over.size(), 3u);
  EXPECT_TRUE(contains(result.notices, "HOROVOD_FUSION_THRESHOLD: taken as --bucket_mb=16\n")) << result.notices;
  // Without fusion: one bucket per parameter.
  EXPECT_EQ(resolve({}, 2, {{"HOROVOD_FUSION_THRESHOLD", "0"}}).settings.shape.buckets.bytes, 1);
}

TEST(HorovodVariables, TheCommandLineWins) {
  const Resolved result = resolve({"--bucket_mb=4", "--noautotune_buckets"}, 2,
                                  {{"HOROVOD_FUSION_THRESHOLD", "16777216"}, {"HOROVOD_AUTOTUNE", "1"}});
  EXPECT_EQ(result.settings.shape.buckets.bytes, 4 << 20);
  EXPECT_FALSE(result.settings.shape.tune_buckets);
  EXPECT_TRUE(contains(result.notices, "HOROVOD_FUSION_THRESHOLD: ignored, because --bucket_mb=4 is given"));
}

TEST(HorovodVariables, AllHaveANotice) {
  for (const char* name :
       {"CYCLE_TIME", "CACHE_CAPACITY", "TIMELINE", "HIERARCHICAL_ALLREDUCE", "HIERARCHICAL_ALLGATHER",
        "STALL_CHECK_TIME_SECONDS", "TORUS_ALLREDUCE", "AUTOTUNE_LOG", "NUM_NCCL_STREAMS", "SOMETHING_NEW"}) {
    const std::string variable = std::string("HOROVOD_") + name;
    const Resolved result = resolve({}, 2, {{variable, "1"}});
    ASSERT_EQ(result.taken_over.size(), 1u) << variable;
    EXPECT_TRUE(result.taken_over[0].starts_with(variable + ": ")) << result.taken_over[0];
  }
  // The library's default: off.
  EXPECT_TRUE(resolve({}, 2, {{"HOROVOD_AUTOTUNE", "0"}, {"HOROVOD_HIERARCHICAL_ALLREDUCE", "0"}}).taken_over.empty());
}

TEST(HorovodVariables, InvalidValuesAreErrors) {
  EXPECT_TRUE(contains(refusal({}, 2, {{"HOROVOD_FUSION_THRESHOLD", "64MB"}}), "HOROVOD_FUSION_THRESHOLD=64MB"));
  EXPECT_TRUE(contains(refusal({}, 1, {{"HOROVOD_SIZE", "4"}, {"HOROVOD_RANK", "0"}}), "use horovodrun --mpi"));
}

TEST(HorovodVariables, AreReadFromTheProcess) {
  setenv("HOROVOD_CYCLE_TIME", "0.5", 1);
  EXPECT_EQ(cli::horovod_variables().at("HOROVOD_CYCLE_TIME"), "0.5");
  unsetenv("HOROVOD_CYCLE_TIME");
  EXPECT_TRUE(cli::horovod_variables().empty());
}

}  // namespace
}  // namespace dtrain::cnn_benchmarks
