// Names and defaults: horovod/common/common.h and operations.cc.
#include "apps/cli/options/horovod.h"

#include <algorithm>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/values.h"
#include "dtrain/core/error.h"
#include "dtrain/distributed/group.h"

namespace dtrain::cli {
namespace {

constexpr std::string_view kPrefix = "HOROVOD_";
constexpr char kNoNegotiation[] = "the order of messages is fixed; there is no negotiation";

// Variables without effect, with the replacement.
struct Replaced {
  const char *name, *meaning;
};
constexpr Replaced kReplaced[] = {
    {"CYCLE_TIME", kNoNegotiation},
    {"CACHE_CAPACITY", kNoNegotiation},
    {"HIERARCHICAL_ALLREDUCE", "--all_reduce_algorithm=auto selects a hierarchical all-reduce where it is faster"},
    {"HIERARCHICAL_ALLGATHER", "training uses no all-gather"},
    {"TORUS_ALLREDUCE", "there is no torus algorithm; see --all_reduce_algorithm"},
    {"TIMELINE", "this program writes no timeline"},
    {"TIMELINE_MARK_CYCLES", "there are no cycles"},
    {"STALL_CHECK_TIME_SECONDS", "stragglers are always reported; --collective_timeout ends the job"},
    {"STALL_CHECK_DISABLE", "a stalled job always ends, after --collective_timeout"},
};

double number_of(const std::string& name, const std::string& text) {
  try {
    return parse_number<double>(text, kNotNegative);
  } catch (const Error& error) {
    throw Error(fmt::format("{}={}: {}", name, text, error.what()));
  }
}

// Variables of horovodrun's processes; with mpirun as its launcher, MPI provides the same.
bool is_place(std::string_view name) {
  for (const std::string_view place : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"})
    if (name == place) return true;
  return false;
}

void check_places(const std::map<std::string, std::string>& variables) {
  const auto size = variables.find("HOROVOD_SIZE");
  if (size == variables.end() || number_of(size->first, size->second) <= 1) return;
  DT_CHECK(launcher_rank(cli::environment()).size > 1, "HOROVOD_SIZE=", size->second,
           ": horovodrun started these processes without MPI (Gloo), which is not supported; use horovodrun --mpi or "
           "mpirun");
}

}  // namespace

std::map<std::string, std::string> horovod_variables() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos)
      found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

std::vector<std::string> apply_horovod(const std::map<std::string, std::string>& variables, FlagSet& flags) {
  check_places(variables);
  std::vector<std::string> notices;
  for (const auto& [variable, value] : variables) {
    const std::string name = variable.substr(kPrefix.size());
    const bool off = value.empty() || value == "0";  // parsed as a boolean, like Horovod
    const auto* replaced = std::ranges::find_if(kReplaced, [&](const Replaced& r) { return name == r.name; });
    if (is_place(name) || (off && name == "HIERARCHICAL_ALLREDUCE")) continue;
    if (const std::optional<std::string> taken = flags.take_variable(variable, value)) {
      if (!taken->empty()) notices.push_back(*taken);
    } else if (replaced != std::end(kReplaced)) {
      notices.push_back(fmt::format("{}: {}", variable, replaced->meaning));
    } else {
      notices.push_back(fmt::format("{}: has no meaning here", variable));
    }
  }
  return notices;
}

}  // namespace dtrain::cli
