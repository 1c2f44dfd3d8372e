// Starting, signals, lines and ends.
#include "apps/cli/local_ranks.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/child.h"
#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/cli/run_main.h"
#include "apps/cli/values.h"
#include "libdtrain/core/error.h"
#include "libdtrain/distributed/tcp_socket.h"

namespace dtrain::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr char kRankHere[] = "DTRAIN_LOCAL_RANK", kRanksHere[] = "DTRAIN_LOCAL_RANKS", kListener[] = "DTRAIN_LISTENER";
constexpr std::chrono::seconds kGrace{10};  // until the others of one that failed have to have ended

int number_in(const char* variable, int otherwise) {
  const char* text = environment()(variable);
  return text == nullptr ? otherwise : static_cast<int>(parse_number<int64_t>(text, kCount));
}

// A secret of this job: other users of the machine may reach the port.
std::string draw_secret() {
  std::string text;
  for (const unsigned char byte : tcp::draw_nonce()) text += fmt::format("{:02x}", byte);
  return text;
}

class LocalRanks {
 public:
  LocalRanks(const LocalJob& job, const std::vector<std::string>& argv) : job_(job) {
    sigemptyset(&signals_);
    for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
    heard_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
    if (heard_ < 0) throw Error(Fault::resource, concat("cannot wait for signals: ", strerror(errno)));
    start(argv);
  }
  ~LocalRanks() {
    for (Child& child : children_) child.kill(SIGKILL);
    close(heard_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  int wait() {
    while (std::ranges::any_of(children_, &Child::lives)) {
      look();
      if (failed_ && Clock::now() - *failed_ > kGrace)
        for (Child& child : children_) child.kill(SIGKILL);
    }
    for (Child& child : children_) child.pass_on();
    return report();
  }

 private:
  void start(const std::vector<std::string>& argv) {
    const bool alone = job_.count == job_.size;
    Settings settings = {{kRanksHere, std::to_string(job_.count)}, {"DTRAIN_SIZE", std::to_string(job_.size)}};
    tcp::Socket listener;
    if (alone) {
      listener = tcp::listen_on("127.0.0.1", 0, "this program");
      const std::string secret = draw_secret();
      settings.insert(settings.end(), {{"DTRAIN_MASTER_ADDR", "127.0.0.1"},
                                       {"DTRAIN_MASTER_PORT", std::to_string(tcp::port_of(listener))},
                                       {"DTRAIN_JOB_ID", secret.substr(0, 8)},
                                       {"DTRAIN_JOB_SECRET", secret},
                                       {"DTRAIN_JOB_SECRET_FILE", ""},
                                       {"DTRAIN_BIND_ADDR", ""}});
    }
    children_.reserve(static_cast<size_t>(job_.count));
    for (int i = 0; i < job_.count; ++i) {
      ChildOptions options{.argv = argv, .variables = settings, .mask = before_};
      options.variables.emplace_back(kRankHere, std::to_string(i));
      options.variables.emplace_back("DTRAIN_RANK", std::to_string(job_.first + i));
      if (alone && i == 0) {
        options.variables.emplace_back(kListener, std::to_string(listener.file()));
        options.inherited = listener.file();
      }
      if (!job_.cores.empty()) options.cores = job_.cores[static_cast<size_t>(i)];
      children_.emplace_back(options);
    }
  }

  // Waits for whatever happens next.
  void look() {
    std::vector<pollfd> files{{heard_, POLLIN, 0}};
    for (const Child& child : children_) files.push_back({child.lines(), POLLIN, 0});
    constexpr int kMilliseconds = 500;
    ::poll(files.data(), files.size(), kMilliseconds);
    signalfd_siginfo signal{};
    while (read(heard_, &signal, sizeof signal) == sizeof signal) {
      const auto number = static_cast<int>(signal.ssi_signo);
      if (number == SIGCHLD) continue;
      for (Child& child : children_) child.kill(number);
    }
    for (Child& child : children_) {
      child.pass_on();
      if (!child.lives() || !child.has_ended()) continue;
      ends_.push_back(&child);
      if (severity(child.code()) > kSeverityOfStop && !failed_) failed_ = Clock::now();
    }
  }

  static constexpr int kSeverityOfStop = 1;
  // The end of one rank is another's fault: what the others die of says less.
  static int severity(int code) {
    return code == 0 ? 0 : code == kStopped ? kSeverityOfStop : code == static_cast<int>(Fault::communication) ? 2 : 3;
  }

  int report() const {
    const Child& worst =
        **std::ranges::max_element(ends_, {}, [](const Child* child) { return severity(child->code()); });
    if (severity(worst.code()) <= kSeverityOfStop) return worst.code();
    const auto rank = static_cast<int>(&worst - children_.data());
    if (worst.signal() != 0)
      print_message("error", fmt::format("rank {} (process {}) was ended by signal {} ({})", job_.first + rank,
                                         worst.pid(), worst.signal(), strsignal(worst.signal())));
    else if (worst.error().empty())
      print_message("error", fmt::format("rank {} ended with exit code {}", job_.first + rank, worst.code()));
    else
      print_on_stderr(worst.error());
    return worst.code();
  }

  const LocalJob& job_;
  sigset_t signals_{}, before_{};
  int heard_ = -1;
  std::vector<Child> children_;
  std::vector<const Child*> ends_;  // in the order in which they ended
  std::optional<Clock::time_point> failed_;
};

}  // namespace

LocalRank local_rank() {
  const int count = number_in(kRanksHere, 0);
  return {.rank = count > 0 ? number_in(kRankHere, 0) : 0, .count = count};
}

int run_local_ranks(const LocalJob& job, const std::vector<std::string>& argv) { return LocalRanks(job, argv).wait(); }

void take_listener(TcpOptions& tcp) { tcp.listener = number_in(kListener, -1); }

}  // namespace dtrain::cli
