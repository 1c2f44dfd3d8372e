// Output locations of a run: links are followed or left alone, the user's files are not touched, and no file replaces a
// closed standard descriptor.
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class Places : public testing::Test {
 protected:
  static Arguments run_of(int steps) {
    return {"--model=lenet",     "--device=cpu",           "--batch_size=2",
            "--display_every=1", "--num_warmup_batches=0", "--num_batches=" + std::to_string(steps)};
  }
  // With a checkpoint every second step.
  Arguments in_train_dir(const std::string& name = "run") const {
    return {"--train_dir=" + path(name), "--save_model_steps=2"};
  }
  std::string path(const std::string& name) const { return (root / name).string(); }
  std::string step(int number) const { return path("run/checkpoints/step-" + std::to_string(number)); }

  void train_to(int steps, const Arguments& more = {}) const {
    const ProgramResult result = train(run_of(steps) + in_train_dir() + more);
    ASSERT_EQ(result.code, 0) << result.err;
  }
  // The run exits with `code` and a single error line containing `part`, without training.
  void expect_refusal(const Arguments& more, int code, const std::string& part) const {
    const ProgramResult result = train(run_of(2) + more);
    EXPECT_EQ(result.code, code) << result.err;
    const size_t at = result.err.find("error: ");
    ASSERT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find('\n', at), result.err.size() - 1) << result.err;
    EXPECT_TRUE(contains(result.err.substr(at), part)) << result.err;
    EXPECT_FALSE(contains(result.out, "images/sec")) << result.out;
  }

  TempDirectory root;
};

TEST_F(Places, NothingIsRemovedThroughALink) {
  train_to(4);
  // Apparent leftovers of a killed run, and an old checkpoint that was moved to an archive.
  fs::create_directory(root / "mine");
  write_file(path("mine/thesis"), "years of work");
  fs::create_symlink(path("mine"), step(40) + ".tmp-0123456789abcdef");
  fs::rename(step(2), root / "archive");
  fs::create_symlink(path("archive"), step(2));
  const std::string model = read_file(path("archive/model.safetensors"));
  train_to(12, {"--max_ckpts_to_keep=2"});
  EXPECT_EQ(read_file(path("mine/thesis")), "years of work");
  EXPECT_TRUE(fs::is_symlink(step(40) + ".tmp-0123456789abcdef"));
  EXPECT_TRUE(fs::exists(path("archive/MANIFEST.json")));
  EXPECT_TRUE(read_file(path("archive/model.safetensors")) == model);
  EXPECT_TRUE(fs::is_symlink(step(2)));
  for (int removed : {4, 6, 8}) EXPECT_FALSE(fs::exists(step(removed))) << removed;
}

TEST_F(Places, ALinkedCheckpointIsContinued) {
  train_to(4);
  fs::rename(step(4), root / "archive");
  fs::create_symlink(path("archive"), step(4));
  const ProgramResult result = train(run_of(6) + in_train_dir());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "\n5\timages/sec")) << result.out;
  EXPECT_FALSE(contains(result.out, "\n4\timages/sec")) << result.out;
}

TEST_F(Places, FoldersMayBeLinks) {
  train_to(12, {"--max_ckpts_to_keep=2"});
  fs::create_directory(root / "disk");
  fs::create_directory(root / "linked");
  fs::create_directory(root / "disk/step-3.tmp-0123456789abcdef");  // left by a killed run
  fs::create_symlink(path("disk"), root / "linked/checkpoints");
  fs::create_symlink(path("linked"), root / "linked_too");
  const ProgramResult result = train(run_of(12) + in_train_dir("linked_too") + Arguments{"--max_ckpts_to_keep=2"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(root / "disk"), {}), 2);
  for (const char* file : {"/model.safetensors", "/state.safetensors", "/state.json"})
    EXPECT_TRUE(read_file(path("disk/step-12") + file) == read_file(step(12) + file)) << file;
}

TEST_F(Places, RefusesALockThatIsNotAFile) {
  fs::create_directory(root / "run");
  const std::string lock = path("run/lock");
  write_file(path("text"), "precious");
  fs::create_symlink(path("text"), lock);
  expect_refusal(in_train_dir(), 1, "/run/lock: is a link");
  EXPECT_EQ(read_file(path("text")), "precious");
  fs::remove(lock);
  fs::create_symlink(path("new"), lock);
  expect_refusal(in_train_dir(), 1, "/run/lock: is a link");
  EXPECT_FALSE(fs::exists(root / "new"));
  write_file(lock, "of a door");
  expect_refusal(in_train_dir(), 1, "/run/lock: is not a lock file");
  EXPECT_EQ(read_file(lock), "of a door");
  write_file(lock, "12345\n6\n");  // of a run that was killed while writing its PID
  train_to(2);
}

TEST_F(Places, AcceptsLargeNumbersOfCheckpointsAndSeconds) {
  train_to(8, {"--max_ckpts_to_keep=2147483648"});
  EXPECT_EQ(std::distance(fs::directory_iterator(root / "run/checkpoints"), {}), 4);
  const ProgramResult result =
      train(run_of(8) + Arguments{"--train_dir=" + path("seldom"), "--save_model_secs=10000000000"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(root / "seldom/checkpoints"), {}), 1);
}

TEST_F(Places, AFileThatHoldsNoMetricsIsRefused) {
  const Arguments file{"--metrics_file=" + path("file")};
  const std::string row = "{\"step\":7,\"loss\":1}\n";
  for (const std::string& text : {std::string("a text without an end of line"), std::string("{\"weights\":1}\n"),
                                  row + "a line of mine\n" + row, row + "unfinished", std::string(1 << 20, '\0')}) {
    write_file(path("file"), text);
    expect_refusal(file, 2, "file, line ");
    EXPECT_TRUE(read_file(path("file")) == text) << text.substr(0, 100);
  }
  for (const std::string& text : {std::string(), row, row + "{\"step\":8,\"lo", row + "{\"st"}) {
    write_file(path("file"), text);
    const ProgramResult result = train(run_of(2) + file);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(read_file(path("file")).starts_with("{\"step\":1,")) << read_file(path("file"));
  }
}

TEST_F(Places, MetricsGoThroughAFifo) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const ProgramResult unread = train(run_of(3) + Arguments{"--metrics_file=" + path("fifo")});
  EXPECT_EQ(unread.code, 0) << unread.err;
  std::fstream both(path("fifo"), std::ios::in | std::ios::out);
  const ProgramResult result = train(run_of(3) + Arguments{"--metrics_file=" + path("fifo")});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(fs::is_fifo(root / "fifo"));
  for (int step = 1; step <= 3; ++step) {
    std::string line;
    ASSERT_TRUE(std::getline(both, line));
    EXPECT_TRUE(line.starts_with("{\"step\":" + std::to_string(step) + ",")) << line;
  }
  const ProgramResult null = train(run_of(3) + Arguments{"--metrics_file=/dev/null"});
  EXPECT_EQ(null.code, 0) << null.err;
  const ProgramResult full = train(run_of(3) + Arguments{"--metrics_file=/dev/full"});
  EXPECT_EQ(full.code, 0) << full.err;
  EXPECT_TRUE(contains(full.err, "No space left on device; the run goes on without it")) << full.err;
}

// Every file of the run is as with all descriptors open.
TEST_F(Places, ClosedDescriptorsAreNotTakenForFiles) {
  train_to(6);
  std::string command = (bin_dir() / kProgram).string();
  for (const std::string& argument : run_of(6)) command += " " + argument;
  for (const char* closed : {"<&- >&-", ">&-", "<&- >&- 2>&-", "2>&-"}) {
    SCOPED_TRACE(closed);
    const std::string folder = path(closed);
    const std::string line = "unset OMP_WAIT_POLICY GOMP_SPINCOUNT; OMP_NUM_THREADS=1 exec " + command +
                             " --save_model_steps=2 --train_dir='" + folder + "' --metrics_file='" + folder +
                             ".json' >/dev/null 2>&1 " + closed;
    const int status = std::system(line.c_str());
    ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(read_file(folder + "/lock").find_first_not_of("0123456789\n"), std::string::npos);
    EXPECT_TRUE(read_file(folder + ".json").starts_with("{\"step\":1,"));
    for (const char* file : {"/model.safetensors", "/state.safetensors", "/state.json", "/MANIFEST.json"})
      EXPECT_TRUE(read_file(folder + "/checkpoints/step-6" + file) == read_file(step(6) + file)) << file;
  }
}

}  // namespace
}  // namespace dtrain
