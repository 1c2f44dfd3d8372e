// Live views of a training: metrics over HTTP, and the progress block on the terminal.
#include "apps/observers/live_view.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <regex>
#include <sstream>

#include "dtrain/core/error.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

// Response to GET `path` at a local port.
std::string http_get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t count; (count = read(fd, buffer, sizeof buffer)) > 0;) answer.append(buffer, static_cast<size_t>(count));
  close(fd);
  return answer;
}

int port_of(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }

// Value of a sample by name and labels; NaN if missing.
double sample(const std::string& answer, const std::string& name) {
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
  return std::numeric_limits<double>::quiet_NaN();
}

Stepped step_of(uint64_t step, double loss) {
  return {.step = step,
          .shown = true,
          .loss = loss,
          .l2_loss = 0.5,
          .metrics = {{"top_1_accuracy", 0.25}},
          .learning_rate = 0.1,
          .seconds = 0.25,
          .more_under_way = true,
          .times = {.step = 0.2, .forward = 0.05},
          .slowest = {1, 1.5},
          .rank_seconds = {0.1, 0.15}};
}

TEST(MetricsEndpoint, ServesTheLastDisplayedStep) {
  observers::MetricsEndpointOptions options;
  options.figures.speed.samples_per_step = 8;
  options.figures.total_steps = 100;
  options.labels = {{"model", "a\"b"}};
  options.memory = [] { return MemoryStats{.in_use = 1, .peak_in_use = 3}; };
  observers::MetricsEndpoint endpoint(options);
  const int port = port_of(endpoint.url());
  endpoint.begun({.step = 10});
  for (uint64_t step = 11; step <= 13; ++step) {
    endpoint.stepping(step);
    endpoint.stepped(step_of(step, static_cast<double>(step)));
  }
  endpoint.evaluated({.step = 12, .result = {.values = {{"AP", 0.5}}, .seconds = 2}});
  endpoint.saved({.report = {.step = 12, .path = "step-12", .seconds = 0.5}});
  endpoint.noticed({"slow"});
  const std::string answer = http_get(port, "/metrics");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_EQ(sample(answer, "dtrain_info{model=\"a\\\"b\"}"), 1);
  EXPECT_EQ(sample(answer, "dtrain_start_step"), 10);
  EXPECT_EQ(sample(answer, "dtrain_step"), 13);
  EXPECT_EQ(sample(answer, "dtrain_steps"), 100);
  EXPECT_EQ(sample(answer, "dtrain_loss"), 13);
  EXPECT_EQ(sample(answer, "dtrain_total_loss"), 13.5);
  EXPECT_EQ(sample(answer, "dtrain_metric{name=\"top_1_accuracy\"}"), 0.25);
  EXPECT_EQ(sample(answer, "dtrain_images_per_second"), 32);
  EXPECT_NEAR(sample(answer, "dtrain_step_part_seconds{part=\"forward\"}"), 0.05, 1e-9);
  EXPECT_EQ(sample(answer, "dtrain_slowest_rank_ratio"), 1.5);
  EXPECT_EQ(sample(answer, "dtrain_rank_step_seconds{rank=\"1\"}"), 0.15);
  EXPECT_EQ(sample(answer, "dtrain_device_memory_bytes{state=\"peak_in_use\"}"), 3);
  EXPECT_EQ(sample(answer, "dtrain_step_duration_seconds_count"), 3);
  EXPECT_EQ(sample(answer, "dtrain_evaluation{name=\"AP\"}"), 0.5);
  EXPECT_EQ(sample(answer, "dtrain_checkpoint_step"), 12);
  EXPECT_EQ(sample(answer, "dtrain_checkpoints_total"), 1);
  EXPECT_EQ(sample(answer, "dtrain_notices_total"), 1);
  EXPECT_GT(sample(answer, "dtrain_resident_memory_bytes"), 1e6);
  EXPECT_NE(http_get(port, "/etc/passwd").find(" 404 "), std::string::npos);
}

TEST(MetricsEndpoint, AnswersBesideIdleConnections) {
  const observers::MetricsEndpoint endpoint({});
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port_of(endpoint.url())));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> silent;
  for (int i = 0; i < 96; ++i) {
    silent.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(silent.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(http_get(port_of(endpoint.url()), "/metrics").starts_with("HTTP/1.1 200"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  for (const int fd : silent) close(fd);
}

TEST(MetricsEndpoint, NamesAnOccupiedPort) {
  const observers::MetricsEndpoint first({});
  const auto port = static_cast<uint16_t>(port_of(first.url()));
  try {
    const observers::MetricsEndpoint second({.port = port});
    FAIL() << "both listen at " << port;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::resource);
    EXPECT_NE(std::string(error.what()).find(":" + std::to_string(port) + ": another program"), std::string::npos);
  }
}

std::vector<std::string> block_after(uint64_t step, int columns) {
  cli::LiveBlock terminal;
  observers::ProgressBlockOptions options;
  options.what = "resnet50";
  options.ranks = 4;
  options.figures.speed.samples_per_step = 8;
  options.figures.total_steps = 1000;
  options.memory = [] { return MemoryStats{.peak_in_use = size_t{3} << 30}; };
  observers::ProgressBlock block(options, terminal);
  block.begun({});
  for (uint64_t i = 1; i <= step; ++i) {
    block.stepping(i);
    Stepped event = step_of(i, 2.5);
    event.seconds = i % 2 == 0 ? 0.25 : 0.5;
    block.stepped(event);
  }
  block.evaluated({.step = step, .result = {.values = {{"top_1_accuracy", 0.5}, {"top_5_accuracy", 0.75}}}});
  block.saved({.report = {.step = step, .path = "checkpoint"}});
  return block.lines(columns);
}

TEST(ProgressBlock, DropsPartsThatDoNotFit) {
  const std::vector<std::string> wide = block_after(250, 200);
  ASSERT_EQ(wide.size(), 3U);
  EXPECT_TRUE(std::regex_match(wide[0], std::regex(R"(resnet50  step 250 of 1000  \[#{15}\.{45}\]  25\.0 %.*)")))
      << wide[0];
  for (const char* part : {"loss 2.5", " images/s ", "rate 0.1", "data wait 0.0 %", "memory 3.0 GiB"})
    EXPECT_NE(wide[1].find(part), std::string::npos) << wide[1];
  EXPECT_EQ(
      wide[2],
      "4 ranks   slowest: rank 1, 1.50 of the median   evaluation at 250: top_1_accuracy 0.5 top_5_accuracy 0.75   "
      "checkpoint at 250");
  for (const int columns : {79, 40, 20, 1})
    for (const std::string& line : block_after(250, columns))
      EXPECT_LE(cli::cut_to(line, columns).size(), static_cast<size_t>(3 * columns));
  EXPECT_EQ(block_after(250, 79)[2], "4 ranks   slowest: rank 1, 1.50 of the median");
}

TEST(ProgressBlock, IsCutAtCharacters) {
  EXPECT_EQ(cli::cut_to("a\u2581\u2582b", 2), "a\u2581");
  EXPECT_EQ(cli::cut_to("ab", 5), "ab");
  EXPECT_EQ(cli::cut_to("ab", 0), "");
}

const Arguments kShortRun = {"--model=trivial", "--device=cpu", "--num_intra_threads=1", "--batch_size=2",
                             "--num_batches=30"};

std::string without_figures(const std::string& log) {
  return std::regex_replace(log, std::regex(R"((images/sec|Data wait|Step parts|Model FLOPs|Peak memory): .*)"), "");
}

TEST(LiveRun, InAPipeNothingChanges) {
  const ProgramResult plain = train(kShortRun), live = train(kShortRun + Arguments{"--progress"});
  EXPECT_EQ(live.code, 0);
  EXPECT_EQ(without_figures(live.out), without_figures(plain.out));
  EXPECT_EQ(without_figures(live.err), without_figures(plain.err));
}

// Output of a program on a terminal of 80 columns.
std::string on_terminal(const Arguments& arguments) {
  const winsize size{24, 80, 0, 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::string output;
  char buffer[4096];
  for (ssize_t count; (count = read(terminal, buffer, sizeof buffer)) > 0;)
    output.append(buffer, static_cast<size_t>(count));
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(terminal);
  return output;
}

// Final screen contents: a block is removed by moving up and clearing all below.
std::string screen_of(const std::string& output) {
  static const std::regex kErase("\033\\[(\\d+)A\033\\[J");
  std::string screen, rest = std::regex_replace(output, std::regex("\r\n"), "\n");
  for (std::smatch match; std::regex_search(rest, match, kErase); rest = match.suffix()) {
    screen += match.prefix();
    for (int lines = std::stoi(match[1]); lines > 0; --lines) {
      screen.pop_back();
      screen.resize(screen.rfind('\n') + 1);
    }
  }
  return screen + rest;
}

TEST(LiveRun, OnATerminalTheBlockIsBelowTheLogAndRemovedAtTheEnd) {
  const std::string output =
      on_terminal(Arguments{(bin_dir() / kProgram).string()} + kShortRun + Arguments{"--progress"});
  EXPECT_NE(output.find("trivial  step "), std::string::npos) << output;
  const std::string screen = screen_of(output);
  EXPECT_EQ(screen.find("trivial  step "), std::string::npos) << screen;
  const ProgramResult plain = train(kShortRun);
  EXPECT_EQ(without_figures(screen), plain.err + without_figures(plain.out)) << output;
}

}  // namespace
}  // namespace dtrain
