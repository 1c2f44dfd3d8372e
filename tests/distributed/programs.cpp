// Programs under mpirun: output and exit codes.
#include <sched.h>

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// A hang fails the test.
ProgramResult run_ranks(int ranks, const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"120",
                                      "mpirun",
                                      "--allow-run-as-root",
                                      "--oversubscribe",
                                      "--bind-to",
                                      "none",
                                      "-np",
                                      std::to_string(ranks),
                                      (bin_dir() / program).string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program("/usr/bin/timeout", command);
}

ProgramResult run_benchmark(int ranks, const std::vector<std::string>& arguments) {
  return run_ranks(ranks, "dtrain-allreduce-benchmark", arguments);
}

TEST(AllReduceBenchmark, WritesWhatItMeasured) {
  const TempDirectory directory;
  for (const char* wire : {"fp32", "bf16", "fp16"}) {
    const std::string file = (directory / wire).string() + ".json";
    const ProgramResult run = run_benchmark(
        3, {"--sizes=4,64K,1M", "--iterations=2", "--warmup=0", std::string("--wire=") + wire, "--json", file});
    ASSERT_EQ(run.code, 0) << run.err;
    const auto json = nlohmann::json::parse(read_file(file));
    EXPECT_EQ(json["ranks"], 3);
    EXPECT_EQ(json["hosts"].size(), 3u);
    ASSERT_EQ(json["rows"].size(), 3u);
    for (const auto& row : json["rows"]) {
      EXPECT_EQ(row["wrong"], 0) << row;
      const double seconds = row["seconds"], bandwidth = row["algorithm_bandwidth"], bus = row["bus_bandwidth"];
      EXPECT_NEAR(bandwidth * seconds, row["bytes"], 1e-6);
      EXPECT_NEAR(bus / bandwidth, 4.0 / 3, 1e-9);
    }
    EXPECT_EQ(json["rows"][1]["bytes"], 65536);
    EXPECT_NE(run.out.find("3 ranks, cpu: "), std::string::npos) << run.out;
  }
}

TEST(AllReduceBenchmark, SumsTheGradientsOfAModel) {
  const ProgramResult buckets = run_benchmark(
      2, {"--model=resnet20", "--data_name=cifar10", "--bucket_bytes=500K", "--iterations=1", "--warmup=0"});
  ASSERT_EQ(buckets.code, 0) << buckets.err;
  EXPECT_NE(buckets.out.find("  bucket 1 of 2\n"), std::string::npos) << buckets.out;
  EXPECT_NE(buckets.out.find("  resnet20, all of them\n"), std::string::npos) << buckets.out;
  const ProgramResult alone =
      run_benchmark(1, {"--model=resnet20", "--data_name=cifar10", "--bucket_bytes=0", "--iterations=1"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.out.find("1 rank, cpu: "), std::string::npos) << alone.out;
}

// Flags of the training programs, and former names.
TEST(AllReduceBenchmark, HasTheNamesOfTraining) {
  const TempDirectory directory;
  const std::string old_file = (directory / "old.json").string(), new_file = (directory / "new.json").string();
  const std::vector<std::string> model = {"--model=resnet20", "--data_name=cifar10", "--iterations=1", "--warmup=0"};
  const auto names_of_rows = [&](std::vector<std::string> arguments, const std::string& file) {
    arguments.insert(arguments.end(), model.begin(), model.end());
    const ProgramResult run = run_program("dtrain-allreduce-benchmark", arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    const auto json = nlohmann::json::parse(read_file(file));
    std::vector<std::pair<std::string, int64_t>> names;
    for (const auto& row : json["rows"]) names.emplace_back(row["name"], row["bytes"]);
    return std::pair(names, run.err);
  };
  for (const auto& [former, now] :
       {std::pair("--bucket_bytes=100K", "--bucket_mb=0.09765625"), std::pair("--bucket_bytes=0", "--bucket_mb=0")}) {
    const auto [old_rows, notes] = names_of_rows({former, "--json=" + old_file, "--wire=bf16"}, old_file);
    const auto [new_rows, nothing] = names_of_rows({now, "--json_file=" + new_file, "--wire_precision=bf16"}, new_file);
    EXPECT_EQ(old_rows, new_rows);
    EXPECT_GT(old_rows.size(), 2u);
    EXPECT_EQ(notes, concat("note: --bucket_bytes has been renamed: taken as ", now,
                            "\nnote: --json has been renamed: ", "taken as --json_file=", old_file,
                            "\nnote: --wire has been renamed: taken as --wire_precision=bf16\n"));
    EXPECT_EQ(nothing, "");
  }
}

TEST(AllReduceBenchmark, RefusesWhatIsNotASize) {
  for (const char* size : {"0", "3", "4X", "K", "99999999G", "-4"}) {
    const ProgramResult run = run_program("dtrain-allreduce-benchmark", {std::string("--sizes=") + size});
    EXPECT_EQ(run.code, 1);
    EXPECT_NE(run.err.find(std::string("found '") + size + "'"), std::string::npos) << run.err;
  }
}

TEST(InfoRanks, TellsWhoRunsWhereAndHowFastTheyTalk) {
  const ProgramResult run = run_ranks(3, "dtrain-info", {"--ranks", "--expect_ranks=3", "--expect_hosts=1"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* text : {"3 ranks\n", "MPI, shared memory", "MPI: Open MPI v", "rank 0 - rank 1: latency ",
                           "rank 1 - rank 2: latency ", "rank 2 - rank 0: latency "})
    EXPECT_NE(run.out.find(text), std::string::npos) << text << " in\n" << run.out;
}

TEST(InfoRanks, EndsWithOneLineWhereRanksAreMissing) {
  const ProgramResult run = run_ranks(2, "dtrain-info", {"--ranks", "--expect_ranks=4"});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find(": expected 4 ranks, found 2\n"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("error: "), run.err.rfind("error: ")) << run.err;
}

TEST(InfoRanks, SeesRanksOnTheSameCore) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  int core = 0;
  while (!CPU_ISSET(core, &usable)) ++core;
  const ProgramResult run = run_program(
      "/usr/bin/timeout", {"120", "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2",
                           "taskset", "-c", std::to_string(core), (bin_dir() / "dtrain-info").string(), "--ranks"});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find(concat(" are bound to the same core, ", core, ": ")), std::string::npos) << run.err;
}

TEST(InfoRanks, AloneIsAJobOfOneRank) {
  const ProgramResult run = run_program("dtrain-info", {"--ranks"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("1 rank\n"), std::string::npos) << run.out;
}

TEST(Ranks, EndWhereOthersAreExpected) {
  const ProgramResult run = run_benchmark(2, {"--sizes=4", "--expect_ranks=3"});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("error: rank 0 on "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(": expected 3 ranks, found 2 by OMPI_COMM_WORLD_RANK\n"), std::string::npos) << run.err;
}

// mpirun of one MPI with a program of another starts jobs of one rank each.
TEST(Ranks, EndWhereTheLauncherSaysSomethingElse) {
  setenv("DTRAIN_RANK", "1", 1);
  setenv("DTRAIN_SIZE", "7", 1);
  const ProgramResult run = run_benchmark(2, {"--sizes=4"});
  unsetenv("DTRAIN_RANK");
  unsetenv("DTRAIN_SIZE");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("DTRAIN_RANK says rank 1 of 7, MPI says rank 0 of 2"), std::string::npos) << run.err;
}

// A file that is no library stands for a missing one.
TEST(Ranks, EndWhereOpenMpiCannotBeLoaded) {
  const TempDirectory folder;
  std::ofstream(folder / "libmpi.so.40") << "not a library, but longer than the header of one, which has 64 bytes";
  setenv("LD_LIBRARY_PATH", folder.path().c_str(), 1);
  const ProgramResult info = run_program("dtrain-info", {"--ranks"});
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  const ProgramResult run = run_program("dtrain-allreduce-benchmark", {"--sizes=4"});
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(run.code, static_cast<int>(Fault::resource));
  EXPECT_NE(run.err.find("Open MPI 4 or 5 cannot be loaded: "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("set DTRAIN_MASTER_ADDR\n"), std::string::npos) << run.err;
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find("MPI: none: Open MPI 4 or 5 cannot be loaded: "), std::string::npos) << info.out;
}

}  // namespace
}  // namespace dtrain
