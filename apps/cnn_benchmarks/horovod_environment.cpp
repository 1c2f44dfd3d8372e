// Names and defaults: horovod/common/common.h and operations.cc.
#include "apps/cnn_benchmarks/horovod_environment.h"

#include <algorithm>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/values.h"
#include "libdtrain/core/error.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::cnn_benchmarks {
namespace {

constexpr std::string_view kPrefix = "HOROVOD_";
constexpr char kNoNegotiation[] = "the order of messages is fixed, nothing is negotiated";

// What is done instead.
struct Replaced {
  const char *name, *meaning;
};
constexpr Replaced kReplaced[] = {
    {"CYCLE_TIME", kNoNegotiation},
    {"CACHE_CAPACITY", kNoNegotiation},
    {"HIERARCHICAL_ALLGATHER", "nothing is gathered in training"},
    {"TORUS_ALLREDUCE", "no torus; --all_reduce_algorithm has others"},
    {"TIMELINE", "no timeline is written; the summary tells how much of the sums was not hidden"},
    {"TIMELINE_MARK_CYCLES", "no timeline is written"},
    {"STALL_CHECK_TIME_SECONDS", "a late rank is told of on its own; --collective_timeout ends the job"},
    {"STALL_CHECK_DISABLE", "a job whose ranks wait is always ended, after --collective_timeout"},
};

double number_of(const std::string& name, const std::string& text) {
  try {
    return cli::parse_number<double>(text, cli::kNotNegative);
  } catch (const Error& error) {
    throw Error(fmt::format("{}={}: {}", name, text, error.what()));
  }
}

// What horovodrun tells its processes: with mpirun below, MPI tells the same.
bool is_place(std::string_view name) {
  for (const std::string_view place : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"})
    if (name == place) return true;
  return false;
}

void check_places(const std::map<std::string, std::string>& variables) {
  const auto size = variables.find("HOROVOD_SIZE");
  if (size == variables.end() || number_of(size->first, size->second) <= 1) return;
  DT_CHECK(launcher_rank(cli::environment()).size > 1, "HOROVOD_SIZE=", size->second,
           ": started by horovodrun without MPI, which does not make these processes ranks: use horovodrun --mpi or "
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

std::vector<std::string> apply_horovod(const std::map<std::string, std::string>& variables, cli::FlagSet& flags) {
  check_places(variables);
  std::vector<std::string> notices;
  const auto set = [&](const std::string& variable, const char* flag, const std::string& value) {
    if (flags.given(flag)) {
      notices.push_back(fmt::format("{}: --{}={} is given and counts", variable, flag, flags.text(flag)));
      return;
    }
    flags.preset(flag, value);
    notices.push_back(fmt::format("{}: taken as --{}={}", variable, flag, flags.text(flag)));
  };
  for (const auto& [variable, value] : variables) {
    const std::string name = variable.substr(kPrefix.size());
    const bool off = value.empty() || value == "0";  // as Horovod reads a switch
    const auto* replaced = std::ranges::find_if(kReplaced, [&](const Replaced& r) { return name == r.name; });
    if (is_place(name)) continue;
    if (name == "FUSION_THRESHOLD") {
      // Without fusion each parameter goes alone.
      set(variable, "bucket_mb", off ? "0.000001" : fmt::format("{}", number_of(variable, value) / (1 << 20)));
    } else if (name == "AUTOTUNE") {
      if (!off) set(variable, "autotune_buckets", "true");
    } else if (name == "HIERARCHICAL_ALLREDUCE") {
      if (!off)
        notices.push_back(variable + ": --all_reduce_algorithm=auto sums inside the hosts first wherever that suits");
    } else if (name == "STALL_SHUTDOWN_TIME_SECONDS") {
      if (number_of(variable, value) > 0) set(variable, "collective_timeout", value);
    } else if (replaced != std::end(kReplaced)) {
      notices.push_back(fmt::format("{}: {}", variable, replaced->meaning));
    } else {
      notices.push_back(fmt::format("{}: has no meaning here", variable));
    }
  }
  return notices;
}

}  // namespace dtrain::cnn_benchmarks
