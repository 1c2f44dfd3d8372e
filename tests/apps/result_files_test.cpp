// Result files at any location: non-regular files and links are written through and kept.
#include <sys/stat.h>

#include <thread>

#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

struct Command {
  std::string program;
  std::vector<std::string> arguments;  // the last one ends in "=", after which a path follows
  std::string beginning;               // of the file
};

const std::vector<Command> kCommands = {
    {"dtrain-scale", {"--images_per_sec=100", "--batch_size=10", "--plot="}, "<svg "},
    {"dtrain-scale", {"--measure", "--model=lenet", "--batch_size=1", "--steps=1", "--layers_out="}, "{"},
    {"dtrain-allreduce-benchmark", {"--sizes=4K", "--iterations=1", "--json_file="}, "{"},
};

ProgramResult run_with(const Command& command, const std::string& path) {
  std::vector<std::string> arguments = command.arguments;
  arguments.back() += path;
  return run_program(command.program, arguments);
}

class ResultFiles : public testing::TestWithParam<Command> {
 protected:
  TempDirectory root;
};

TEST_P(ResultFiles, FollowLinks) {
  fs::create_directory(root / "far");
  write_file(root / "far/target", "old");
  fs::create_symlink("far/target", root / "link");
  const ProgramResult result = run_with(GetParam(), root / "link");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(fs::is_symlink(root / "link"));
  EXPECT_TRUE(read_file(root / "far/target").starts_with(GetParam().beginning)) << read_file(root / "far/target");
}

TEST_P(ResultFiles, AreWrittenThroughAFifo) {
  const std::string path = root / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  // Open at both ends, so that the reader never blocks, however the run ends.
  std::fstream both(path, std::ios::in | std::ios::out);
  const ProgramResult result = run_with(GetParam(), path);
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_TRUE(fs::is_fifo(path));
  std::string received(GetParam().beginning.size(), ' ');
  both.read(received.data(), static_cast<std::streamsize>(received.size()));
  EXPECT_EQ(received, GetParam().beginning);
}

// By the descriptor's name: replacing /dev/stdout as root would affect the whole system.
TEST_P(ResultFiles, KeepTheOrderOfSharedOutput) {
  const ProgramResult result = run_with(GetParam(), "/proc/self/fd/1");
  ASSERT_EQ(result.code, 0) << result.err;
  const size_t at = result.out.find("\n" + GetParam().beginning);
  EXPECT_TRUE(at != std::string::npos || result.out.starts_with(GetParam().beginning)) << result.out;
  EXPECT_EQ(result.out.find('\0'), std::string::npos) << "one wrote over the other";
}

INSTANTIATE_TEST_SUITE_P(Flags, ResultFiles, testing::ValuesIn(kCommands), [](const auto& parameter) {
  const std::string flag = parameter.param.arguments.back();
  return flag.substr(2, flag.size() - 3);
});

}  // namespace
}  // namespace dtrain
