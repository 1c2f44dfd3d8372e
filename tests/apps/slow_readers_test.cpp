// Output to pipes with slow or stalled readers.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

class SlowReaders : public CnnBenchmarks {
 protected:
  SlowReaders() {
    if (pipe(ends_.data()) < 0) throw std::runtime_error("pipe");
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    for (int end : ends_) fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  ~SlowReaders() override { close_ends(); }
  void close_ends() {
    for (int& end : ends_)
      if (const int fd = std::exchange(end, -1); fd >= 0) close(fd);
  }

  Arguments run(const std::string& steps) const {
    return synthetic() + Arguments{"--device=cpu",      "--num_batches=" + steps, "--num_warmup_batches=0",
                                   "--display_every=1", "--save_model_steps=50",  "--train_dir=" + path("run")};
  }
  ProgramOptions into_the_pipe() const { return {.out = ends_[1]}; }
  bool is_full() const {
    pollfd writer{ends_[1], POLLOUT, 0};
    return poll(&writer, 1, 0) == 0;
  }
  // Fills the pipe completely through a separate file description, so that the program's end stays blocking.
  void fill() const {
    const int filler = open(("/proc/self/fd/" + std::to_string(ends_[1])).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    while (write(filler, "x", 1) == 1) continue;
    close(filler);
  }
  // Current contents of the pipe.
  std::string read_some() const {
    std::array<char, 4096> text;
    const ssize_t got = read(ends_[0], text.data(), text.size());
    return {text.data(), got > 0 ? static_cast<size_t>(got) : 0};
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(SlowReaders, StopRequestEndsARunWithAStalledLogReader) {
  fcntl(ends_[1], F_SETPIPE_SZ, 8192);
  Program program(kProgram, run("1000000"), into_the_pipe());
  for (int i = 0; i < 60'000 && !is_full(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(is_full());
  fill();
  program.signal(SIGTERM);
  const ProgramResult stopped = program.finish();
  EXPECT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, "; the run goes on, lines may be missing\n")) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, "note: stopped on request at step ")) << stopped.err;
  close_ends();
  const ProgramResult continued = train(run("3"));
  EXPECT_EQ(continued.code, 0) << continued.err;
  EXPECT_TRUE(contains(continued.out, "\nRestored step ")) << continued.out;
}

TEST_F(SlowReaders, SlowReaderGetsAllOutput) {
  fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  Program program(kProgram, run("40"), into_the_pipe());
  for (int i = 0; i < 60'000 && !is_full(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(is_full());
  std::string text;
  for (int i = 0; i < 60'000 && !contains(text, "\nPeak memory:"); ++i) {
    text += read_some();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const ProgramResult result = program.finish();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(contains(result.err, "lines may be missing")) << result.err;
  for (int step = 1; step <= 40; ++step)
    EXPECT_TRUE(contains(text, concat("\n", step, "\timages/sec: "))) << step << text;
}

TEST_F(SlowReaders, ClosedReaderOnlyCostsANotice) {
  Program program(kProgram, run("20"), into_the_pipe());
  close_ends();
  const ProgramResult result = program.finish();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "note: the log: Broken pipe; the run goes on, lines may be missing\n"))
      << result.err;
}

}  // namespace
}  // namespace dtrain
