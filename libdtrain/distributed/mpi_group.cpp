// All-gather of texts by a ring of bytes.
#include "libdtrain/distributed/mpi_group.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include <sys/resource.h>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/mpi_transport.h"
#include "libdtrain/distributed/open_mpi.h"
#include "libdtrain/distributed/read_texts.h"

namespace dtrain {
namespace mpi {
namespace {

// First, fixed-size round: holds most texts completely.
struct Envelope {
  int64_t size = 0;
  char text[248] = "";
};

// Raises the limit of open files: MPI's errors name neither the limit nor the rank. Two ranks share at most two
// connections.
void allow_open_files(int ranks) {
  constexpr rlim_t kBesides = 64;  // data, logs, and files of MPI itself
  const rlim_t needed = kBesides + 2 * static_cast<rlim_t>(std::max(ranks, 0));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed)
    throw Error(Fault::resource, concat("a process may open ", limit.rlim_max, " files here, one of ", ranks,
                                        " ranks may need ", needed, ": raise the limit (ulimit -n)"));
  limit.rlim_cur = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw Error(Fault::resource, concat("cannot raise the limit of open files to ", needed, ": ", strerror(errno)));
}

}  // namespace

MpiGroup::MpiGroup(const GroupOptions& options) : AllReduceGroup(options), thread_(options, "MPI", start_mpi) {
  rank_ = thread_.rank();
  places_ = thread_.places();
  lane_ = thread_.open_lane("control");
}

void MpiGroup::gather_bytes(std::byte* bytes, const std::vector<int64_t>& counts, const std::string& what) {
  std::vector<int> members(counts.size());
  std::iota(members.begin(), members.end(), 0);
  std::vector<Range> parts;
  int64_t at = 0;
  for (const int64_t count : counts) {
    parts.push_back({at, at + count});
    at += count;
  }
  thread_.wait(lane_, thread_.submit(lane_, {.what = what,
                                             .bytes = static_cast<uint64_t>(at),
                                             .elements = {.memory = bytes},
                                             .schedule = [&] { return ring_all_gather(members, rank_, parts); },
                                             .segment = 1 << 20}));
}

std::vector<std::string> MpiGroup::all_gather(const std::string& mine, const char* what) {
  const auto ranks = static_cast<size_t>(size());
  std::vector<Envelope> envelopes(ranks);
  Envelope& own = envelopes[static_cast<size_t>(rank_)];
  own.size = static_cast<int64_t>(mine.size());
  std::memcpy(own.text, mine.data(), std::min(mine.size(), sizeof own.text));
  gather_bytes(reinterpret_cast<std::byte*>(envelopes.data()), std::vector<int64_t>(ranks, sizeof(Envelope)), what);

  std::vector<int64_t> counts;  // bytes beyond the envelopes
  for (size_t rank = 0; rank < ranks; ++rank)
    if (envelopes[rank].size < 0 || envelopes[rank].size > static_cast<int64_t>(kMostTextBytes))
      throw Error(Fault::communication, concat(what, ": ", name(static_cast<int>(rank)), " gives a text of ",
                                               envelopes[rank].size, " bytes, at most ", kMostTextBytes));
  for (const Envelope& envelope : envelopes)
    counts.push_back(std::max<int64_t>(0, envelope.size - static_cast<int64_t>(sizeof envelope.text)));
  std::string rest(static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0})), '\0');
  size_t at = 0;
  for (int rank = 0; rank < rank_; ++rank) at += static_cast<size_t>(counts[static_cast<size_t>(rank)]);
  if (mine.size() > sizeof own.text) mine.copy(rest.data() + at, mine.size() - sizeof own.text, sizeof own.text);
  if (!rest.empty()) gather_bytes(reinterpret_cast<std::byte*>(rest.data()), counts, what);

  std::vector<std::string> texts;
  at = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto more = static_cast<size_t>(counts[rank]);
    texts.emplace_back(envelopes[rank].text, static_cast<size_t>(envelopes[rank].size) - more);
    texts.back().append(rest, at, more);
    at += more;
  }
  return texts;
}

void MpiGroup::finish() {
  barrier("the end");
  thread_.finish();
}

}  // namespace mpi

std::unique_ptr<Group> make_mpi_group(const GroupOptions& options, int ranks) {
  mpi::require_first_start();
  mpi::allow_open_files(ranks);
  mpi::return_connection_errors();
  return std::make_unique<mpi::MpiGroup>(options);
}

}  // namespace dtrain
