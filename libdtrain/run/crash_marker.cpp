#include "libdtrain/run/crash_marker.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace dtrain {
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// State of the signal handler; one per process.
std::atomic<bool> is_taken = false;
std::string marker_path;
std::array<struct sigaction, kCrashes.size()> handlers_before;

void restore_handlers() {
  for (size_t i = 0; i < kCrashes.size(); ++i) sigaction(kCrashes[i], &handlers_before[i], nullptr);
}

// Async-signal-safe. A hardware fault recurs after the return; a sent signal is raised again, and is no crash if
// another process sent it.
void mark_crash(int number, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool was_sent = info->si_code <= 0;
  if (!was_sent || info->si_pid == getpid()) {
    const int file = open(marker_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (file >= 0) close(file);
  }
  restore_handlers();
  if (was_sent) raise(number);
  errno = error;
}

// Alternate signal stack, for stack overflows of the calling thread.
void provide_signal_stack() {
  static std::array<std::byte, size_t{64} << 10> memory;
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
}

}  // namespace

CrashMarker::CrashMarker(const std::string& path) : is_first_(!is_taken.exchange(true)) {
  if (!is_first_) return;
  marker_path = path;
  provide_signal_stack();
  struct sigaction action {};
  action.sa_sigaction = mark_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kCrashes.size(); ++i) sigaction(kCrashes[i], &action, &handlers_before[i]);
}

CrashMarker::~CrashMarker() {
  if (!is_first_) return;
  restore_handlers();
  is_taken = false;
}

}  // namespace dtrain
