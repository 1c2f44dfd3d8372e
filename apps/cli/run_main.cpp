// Errors to exit codes; signals to a flag.
#include "apps/cli/run_main.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/ranks.h"
#include "libdtrain/core/error.h"

namespace dtrain::cli {
namespace {

// A signal handler has no other way to reach the program than an object of static storage.
volatile std::sig_atomic_t stop_signal = 0;
timespec stop_time{};              // the handler's alone: it is not interrupted by itself
bool one_request_repeats = false;  // set before the handler is
constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGUSR1};

void on_stop_signal(int number) {
  constexpr int64_t kNanoseconds = 1'000'000'000, kOneRequest = 2 * kNanoseconds;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (stop_signal == 0) {
    stop_signal = number;
    stop_time = now;
    return;
  }
  const int64_t since = (now.tv_sec - stop_time.tv_sec) * kNanoseconds + now.tv_nsec - stop_time.tv_nsec;
  if (!one_request_repeats || since > kOneRequest) _exit(128 + number);
}

// oneDNN's products of matrices point the stack pointer at memory from the heap for a while: there, what the kernel
// keeps of an interrupted thread would overwrite other blocks. Signals come to the calling thread, the program's first.
void take_signals_on_own_stack() {
  alignas(64) static std::byte memory[1 << 16];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  if (sigaltstack(&stack, nullptr) != 0) throw Error(Fault::resource, "cannot give signals a stack of their own");
}

void handle_stop_signals(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  for (int number : kStopSignals) sigaddset(&action.sa_mask, number);
  for (int number : kStopSignals)
    if (sigaction(number, &action, nullptr) != 0) throw Error(Fault::resource, "cannot install a signal handler");
}

int report(Fault fault, const char* message) {
  std::fflush(stdout);
  const std::string rank = rank_name();
  fmt::print(stderr, "error: {}{}{}\n", rank, rank.empty() ? "" : ": ", message);
  return static_cast<int>(fault);
}

}  // namespace

int run_main(const std::function<int()>& body) {
  try {
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

void catch_stop_signals() {
  one_request_repeats = !rank_name().empty();
  take_signals_on_own_stack();
  handle_stop_signals(on_stop_signal);
}

void ignore_stop_signals() { handle_stop_signals(SIG_IGN); }

bool stop_requested() { return stop_signal != 0; }

void end_by_signal() {
  std::signal(stop_signal, SIG_DFL);
  std::raise(stop_signal);
  _exit(128 + stop_signal);
}

std::string version() { return DTRAIN_VERSION; }

}  // namespace dtrain::cli
