// Runs a test as several processes: ranks of one job on this machine.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "dtrain/distributed/group.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {

struct RankResult {
  int code = -1;  // exit code, or 128 + signal
  std::string out;
};

// As in tests/ports.py.
inline int free_port() {
  constexpr int kFirst = 10000, kLast = 65535;
  int first = 0, last = 0;  // ephemeral range
  std::istringstream(read_file("/proc/sys/net/ipv4/ip_local_port_range")) >> first >> last;
  const bool has_all = first <= kFirst && last >= kLast;
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<> ports(kFirst, kLast);
  for (int attempt = 0; attempt < 100000; ++attempt) {
    const int port = ports(random);
    if (!has_all && first <= port && port <= last) continue;
    const int mark = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = ""};
    const std::string text = "dtrain-test-port-" + std::to_string(port);
    std::copy(text.begin(), text.end(), name.sun_path + 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    const bool is_free = bind(mark, reinterpret_cast<sockaddr*>(&name), size) == 0 &&
                         bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(probe);
    if (is_free) return port;  // reserved: `mark` stays open
    close(mark);
  }
  throw Error("no port is free");
}

inline bool is_rank() { return std::getenv("DTRAIN_RANK") != nullptr; }

// Rendezvous of a process started by start_rank().
inline TcpOptions launched_tcp() {
  return tcp_options_from([](const char* name) { return std::getenv(name); });
}

// For ranks of a test: fail() prints the report and exits with code 4.
inline GroupOptions quick_options(double step_limit = 60) {
  GroupOptions options;
  options.setup_limit = 60;
  options.step_limit = step_limit;
  options.warn = [](const std::string& line) {
    std::printf("WARNING: %s\n", line.c_str());
    std::fflush(stdout);
  };
  options.fail = [](const std::string& report, Fault) {
    std::printf("REPORT: %s\n", report.c_str());
    std::fflush(stdout);
    _exit(4);
  };
  return options;
}

// Restarts the program for the current test as rank `rank` of `count` with this port.
inline pid_t start_rank(int rank, int count, int port, const std::string& out) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = concat("--gtest_filter=", test.test_suite_name(), ".", test.name());
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const int file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) _exit(126);
  setenv("DTRAIN_RANK", std::to_string(rank).c_str(), 1);
  setenv("DTRAIN_SIZE", std::to_string(count).c_str(), 1);
  setenv("DTRAIN_MASTER_ADDR", "127.0.0.1", 1);
  setenv("DTRAIN_MASTER_PORT", std::to_string(port).c_str(), 1);
  setenv("DTRAIN_JOB_ID", "a test", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  execl("/proc/self/exe", "test", filter.c_str(), nullptr);
  _exit(127);
}

// In the test's own process: runs it as `count` ranks and returns their results. In a rank: runs `body` and returns
// nothing.
inline std::vector<RankResult> in_ranks(int count, const std::function<void()>& body) {
  if (is_rank()) {
    body();
    return {};
  }
  const TempDirectory folder;
  const int port = free_port();
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < count; ++rank)
    ranks.push_back(start_rank(rank, count, port, (folder / std::to_string(rank)).string()));
  std::vector<RankResult> results;
  for (int rank = 0; rank < count; ++rank) {
    int status = 0;
    waitpid(ranks[static_cast<size_t>(rank)], &status, 0);
    results.push_back({WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                       read_file((folder / std::to_string(rank)).string())});
  }
  return results;
}

// In a rank: output of rank `rank` so far, from the file that start_rank() placed beside this rank's own.
inline std::string written_by(int rank) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/fd/1");
  return read_file(own.parent_path() / std::to_string(rank));
}

// The same, and expects success of all ranks.
inline void pass_in_ranks(int count, const std::function<void()>& body) {
  for (const RankResult& result : in_ranks(count, body)) EXPECT_EQ(result.code, 0) << result.out;
}

}  // namespace dtrain
