// Errors to exit codes; signals to a flag.
#include "apps/cli/run_main.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/ranks.h"
#include "libdtrain/core/error.h"
#include "libdtrain/version.h"

namespace dtrain::cli {
namespace {

// Set by a thread that is never joined, so of static storage.
std::atomic<int> stop_signal = 0;
std::atomic<bool> ignored = false;
constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGUSR1};

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kStopSignals) sigaddset(&set, number);
  return set;
}

[[noreturn]] void wait_for_stop_signals(bool one_request_repeats) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kOneRequest{2};
  const sigset_t set = stop_signals();
  Clock::time_point first;
  while (true) {
    int number = 0;
    if (sigwait(&set, &number) != 0 || ignored) continue;
    if (stop_signal == 0) {
      stop_signal = number;
      first = Clock::now();
    } else if (!one_request_repeats || Clock::now() - first > kOneRequest) {
      _exit(128 + number);
    }
  }
}

int report(Fault fault, const char* message) {
  std::fflush(stdout);
  const std::string rank = rank_name();
  fmt::print(stderr, "error: {}{}{}\n", rank, rank.empty() ? "" : ": ", message);
  return static_cast<int>(fault);
}

// The next file to be opened would take the place of a standard descriptor that is closed, and what is meant for
// people would be written into it.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd)
      throw std::system_error(errno, std::generic_category(), "open /dev/null");
}

}  // namespace

int run_main(const std::function<int()>& body) {
  try {
    open_standard_descriptors();
    const int code = body();
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
    if (!std::cout) throw Error(Fault::resource, "standard output: some of it could not be written");
    return code;
  } catch (const Error& error) {
    return report(error.fault(), error.what());
  } catch (const std::bad_alloc&) {
    return report(Fault::resource, "out of memory");
  } catch (const std::system_error& error) {  // threads, file systems and fmt::print
    return report(Fault::resource, error.what());
  } catch (const std::exception& error) {
    return report(Fault::config, fmt::format("internal error: {}", error.what()).c_str());
  }
}

// No handler may interrupt a thread that computes: oneDNN's products of matrices point the stack pointer at memory from
// the heap for a while, and what the kernel keeps of an interrupted thread would overwrite other blocks there. So the
// signals are blocked here, and in all threads to come, and one thread does nothing but wait for them.
void catch_stop_signals() {
  const sigset_t set = stop_signals();
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) throw Error(Fault::resource, "cannot block signals");
  std::thread(wait_for_stop_signals, !rank_name().empty()).detach();
}

void ignore_stop_signals() { ignored = true; }

bool stop_requested() { return stop_signal != 0; }

void end_by_signal() {
  const int number = stop_signal;
  const sigset_t set = stop_signals();
  std::signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(number);
  _exit(128 + number);
}

std::string version() { return DTRAIN_VERSION; }

}  // namespace dtrain::cli
