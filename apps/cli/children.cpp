// Event loop over signals, output lines and exits of children.
#include "apps/cli/children.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{10};  // grace period for the siblings of a failed child
constexpr int kSeverityOfStop = 1;

// One failure causes others: the siblings' exits are less informative.
int severity(int code) {
  return code == 0 ? 0 : code == kStopped ? kSeverityOfStop : code == static_cast<int>(Fault::communication) ? 2 : 3;
}

}  // namespace

Children::Children(bool together) : together_(together) {
  signals_ = stop_signals();
  sigaddset(&signals_, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals_, &before_);
  heard_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (heard_ < 0) throw Error(Fault::resource, concat("cannot wait for signals: ", strerror(errno)));
}

Children::~Children() {
  for (Child& child : children_) child.kill(SIGKILL);
  close(heard_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Children::start(const std::string& name, ChildOptions options) {
  options.mask = before_;
  children_.emplace_back(options);
  names_.push_back(name);
}

int Children::wait() {
  while (std::ranges::any_of(children_, &Child::lives)) {
    look();
    if (together_ && failed_) end_others();
  }
  for (Child& child : children_) child.pass_on();
  return report();
}

// A stopped child, which the failed one may have waited for, would never end.
void Children::end_others() {
  const bool late = Clock::now() - *failed_ > kGrace;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (!children_[i].lives() || killed_.contains(i) || (!late && !children_[i].is_stopped())) continue;
    if (!late)
      print_message("warning",
                    fmt::format("{} (process {}) is stopped by a signal; killing it, because another process failed",
                                names_[i], children_[i].pid()));
    children_[i].kill(SIGKILL);
    killed_.insert(i);
  }
}

// Waits for the next event.
void Children::look() {
  std::vector<pollfd> files{{heard_, POLLIN, 0}};
  for (const Child& child : children_)
    for (const int file : child.files()) files.push_back({file, POLLIN, 0});
  constexpr int kMilliseconds = 500;
  ::poll(files.data(), files.size(), kMilliseconds);
  signalfd_siginfo signal{};
  while (read(heard_, &signal, sizeof signal) == sizeof signal) {
    const auto number = static_cast<int>(signal.ssi_signo);
    if (number == SIGCHLD) continue;
    for (Child& child : children_) child.ask_to_stop(number);
  }
  for (size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    child.pass_on();
    if (!child.lives() || !child.has_ended()) continue;
    ends_.push_back(i);
    if (severity(child.code()) > kSeverityOfStop && !failed_) failed_ = Clock::now();
  }
}

// A child killed by this process did not fail by itself, unless it exited just before.
int Children::severity_of(size_t index) const {
  const Child& child = children_[index];
  return killed_.contains(index) && child.signal() == SIGKILL ? 0 : severity(child.code());
}

int Children::report() const {
  const size_t last = *std::ranges::max_element(ends_, {}, [&](size_t i) { return severity_of(i); });
  const Child& worst = children_[last];
  if (severity_of(last) <= kSeverityOfStop) return worst.code();
  const std::string& name = names_[last];
  if (worst.signal() != 0)
    print_message("error", fmt::format("{} (process {}) was ended by signal {} ({})", name, worst.pid(), worst.signal(),
                                       strsignal(worst.signal())));
  else if (worst.error().empty())
    print_message("error", fmt::format("{} ended with exit code {}", name, worst.code()));
  else
    print_on_stderr(worst.error());
  return worst.code();
}

}  // namespace dtrain::cli
