// Common parts of groups, the single-process group, and detection of launchers.
#include "dtrain/distributed/group.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/links.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/distributed/watchdog.h"

namespace dtrain {
namespace {

class SingleGroup : public Group {
 public:
  explicit SingleGroup(const GroupOptions& options) : Group(options) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    places_[0] = {.host = host, .pid = getpid()};
  }
  std::vector<std::string> all_gather(const std::string& mine, const char* what) override {
    require_unfinished(what);
    return {mine};
  }
  void finish() override { finished_ = true; }
};

int variable_of(const Environment& environment, const char* variable) {
  const char* text = environment(variable);
  if (text == nullptr) return -1;
  int value = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  DT_CHECK(error == std::errc{} && stop == end && value >= 0, variable, "=", text, ": expected a number from 0 on");
  return value;
}

}  // namespace

double GroupOptions::limit_of(Section section) const {
  switch (section) {
    case Section::setup:
      return setup_limit;
    case Section::evaluation:
      return evaluation_limit;
    case Section::step:
    case Section::checkpoint:
      break;
  }
  return step_limit;
}

void GroupOptions::tell(const std::string& line) const {
  if (warn) warn(line);
}

void GroupOptions::end(const std::string& report, Fault fault) const {
  if (fail)
    fail(report, fault);
  else
    tell(report);
  std::_Exit(static_cast<int>(fault));  // the job cannot continue
}

std::string Group::name(int rank) const {
  return concat("rank ", rank, " on ", places_[static_cast<size_t>(rank)].host);
}

std::pair<int64_t, int64_t> Group::extremes(int64_t mine, const char* what) {
  std::pair<int64_t, int64_t> result{mine, mine};
  read_texts(*this, std::to_string(mine), what, [&](int, const std::string& text) {
    const auto value = number_in<int64_t>(text);
    result = {std::min(result.first, value), std::max(result.second, value)};
  });
  return result;
}

std::string Group::broadcast(const std::string& text, int root, const char* what) {
  DT_CHECK(0 <= root && root < size(), what, ": from rank ", root, " of ", size());
  return all_gather(rank() == root ? text : std::string(), what)[static_cast<size_t>(root)];
}

void Group::enter(Section section, uint64_t step) {
  section_ = section;
  step_ = step;
}

std::string Group::where() const { return name_of(section_, step_); }

void Group::require_unfinished(const char* what) const { DT_CHECK(!finished_, what, ": called after Group::finish()"); }

void Group::fail(const std::string& report, Fault fault) {
  tell_peers(report);
  options_.end(report, fault);
}

std::unique_ptr<Group> make_single_group(const GroupOptions& options) { return std::make_unique<SingleGroup>(options); }

LauncherRank launcher_rank(const Environment& environment) {
  struct Variables {
    const char *rank, *size, *local_rank;
    bool without_mpi = false;
  };
  // In order of precedence: our own variables; mpirun and srun (SLURM sets SLURM_PROCID for batch scripts, too, but
  // SLURM_STEP_NUM_TASKS only for steps of srun); torchrun and PyTorchJob last, since scripts under srun and mpirun set
  // their variables for PyTorch, too. Under srun Open MPI starts only by PMIx, which sets PMIX_NAMESPACE.
  const bool without_pmix = environment("PMIX_NAMESPACE") == nullptr;
  const Variables launchers[] = {
      {"DTRAIN_RANK", "DTRAIN_SIZE", "DTRAIN_LOCAL_RANK"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"},
      {"PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", without_pmix},
      {"RANK", "WORLD_SIZE", "LOCAL_RANK", /*without_mpi=*/true},
  };
  for (const Variables& names : launchers) {
    if (environment(names.rank) == nullptr || environment(names.size) == nullptr) continue;
    const auto number = [&](const char* variable) { return variable_of(environment, variable); };
    const LauncherRank found{number(names.rank), number(names.size), number(names.local_rank), names.rank,
                             names.without_mpi};
    if (found.rank >= 0 && found.size > 0) return found;
  }
  return {};
}

}  // namespace dtrain
