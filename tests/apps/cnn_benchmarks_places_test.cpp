// Where a run writes: links that a user has set are followed or left alone, files of his are not touched, and no file
// takes the place of a closed standard descriptor.
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
  // With a checkpoint after every second step.
  Arguments in_train_dir(const std::string& name = "run") const {
    return {"--train_dir=" + path(name), "--save_model_steps=2"};
  }
  std::string path(const std::string& name) const { return (root / name).string(); }
  std::string step(int number) const { return path("run/checkpoints/step-" + std::to_string(number)); }

  void train_to(int steps, const Arguments& more = {}) const {
    const ProgramResult result = train(run_of(steps) + in_train_dir() + more);
    ASSERT_EQ(result.code, 0) << result.err;
  }
  // The run ends with `code` and says `part` in its one line of error, having trained nothing.
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
