// Opens the group, and prints its warnings and faults.
#include "apps/cli/ranks.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/local_ranks.h"
#include "apps/cli/messages.h"
#include "apps/cli/run_main.h"
#include "dtrain/core/error.h"
#include "libdtrain/distributed/links.h"
#include "libdtrain/train/agreement.h"

namespace dtrain::cli {
namespace {

// Runs on the communication thread, while others compute or print. Skips destructors, which would wait for peers.
[[noreturn]] void end_process(const std::string& report, Fault fault) {
  constexpr unsigned kPatience = 10;
  alarm(kPatience);  // a stalled reader must not block the exit
  print_message("error", report);
  if (ftrylockfile(stdout) == 0) std::fflush(stdout);
  _exit(static_cast<int>(fault));
}

std::string name_of(int rank) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("rank {} on {}", rank, host);
}

void check_launcher(const Group& group, const LauncherRank& told) {
  DT_CHECK(group.size() == told.size && group.rank() == told.rank, told.source, " says rank ", told.rank, " of ",
           told.size, ", MPI says rank ", group.rank(), " of ", group.size(),
           ": is mpirun of the same MPI? This program has loaded ", mpi_version());
}

}  // namespace

Faults injected_faults(const Group& group) {
  const char* const text = environment()("DTRAIN_FAULT");
  return Faults(text == nullptr ? "" : text, group.rank(), group.size());
}

void check_flags(Group& group, const FlagSet& flags) {
  RankSettings settings = flags.settings_that_must_agree();
  settings.insert(settings.begin(), {"the version of dtrain", version()});
  check_equal(group, settings, "flags");
}

std::string rank_name() {
  try {
    const LauncherRank told = launcher_rank(environment());
    return told.size <= 1 ? "" : name_of(told.rank);
  } catch (const Error&) {  // invalid variables are reported elsewhere
    return "";
  }
}

std::unique_ptr<Group> open_group(const GroupOptions& limits, int64_t expect_ranks,
                                  const std::optional<TcpOptions>& tcp) {
  const LauncherRank told = launcher_rank(environment());
  std::unique_ptr<Group> group;
  GroupOptions options = limits;
  options.warn = [name = tcp ? name_of(tcp->rank) : rank_name()](const std::string& line) {
    print_message("warning", fmt::format("{}: {}", name, line));
  };
  options.fail = end_process;
  if (tcp) {
    group = make_tcp_group(options, *tcp);
  } else if (told.size <= 1) {
    group = make_single_group(options);
  } else if (told.without_mpi || environment()("DTRAIN_MASTER_ADDR") != nullptr) {
    TcpOptions meeting = tcp_options_from(environment());
    take_listener(meeting);
    group = make_tcp_group(options, meeting);
  } else {
    group = make_mpi_group(options, told.size);
    check_launcher(*group, told);
  }
  DT_CHECK(expect_ranks == 0 || group->size() == expect_ranks, "expected ", expect_ranks, " ranks, found ",
           group->size(),
           tcp                   ? ": from --worker_hosts"
           : told.source.empty() ? ": no launcher started this process"
                                 : " by " + told.source);
  return group;
}

}  // namespace dtrain::cli
