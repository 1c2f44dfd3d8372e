// Group: the processes of a job and what they tell each other on the host side. What they compute together on their
// devices is the Communicator's part.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/core/error.h"

namespace dtrain {

// Looks up an environment variable: its value, or null where it is not set. The engine reads no environment of its own
// accord; a program passes it that of the process.
using Environment = std::function<const char*(const char* name)>;

// Parts of a run: what may take long in one is a fault in another.
enum class Section { setup, step, evaluation, checkpoint };

struct GroupOptions {
  // Seconds that a rank waits for the others in a collective of a section before the job ends; checkpoints: as steps.
  double setup_limit = 600, step_limit = 60, evaluation_limit = 600;
  double limit_of(Section section) const;
  // Seconds in which all ranks have to have come; none: setup_limit.
  std::optional<double> start_limit{};
  // A line for people: a rank is late, or back. May be empty.
  std::function<void(const std::string&)> warn{};
  // Ends the process with the fault's exit code, on whatever thread finds that a peer is stopped, cut off or out of
  // step (Fault::communication), or that this rank cannot go on; the report says who and where. Does not return; where
  // it is empty, `warn` gets the report, and the process ends with that code all the same.
  std::function<void(const std::string& report, Fault fault)> fail{};
  // Call the two.
  void tell(const std::string& line) const;
  [[noreturn]] void end(const std::string& report, Fault fault = Fault::communication) const;
};

// Where a process of the job runs.
struct Place {
  std::string host;
  int pid = 0;
  int local_rank = 0, local_size = 1;  // among the ranks of its host
  int node = 0;                        // its host's number, in order of first ranks
};

class Group {
 public:
  // Without finish() the process leaves in disorder, after an error: the launcher then ends the others.
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_.size()); }
  const std::vector<Place>& places() const { return places_; }  // by rank
  std::string name(int rank) const;                             // "rank 3 on host-b"

  // What each rank gave, by rank. The caller waits. All ranks call the same in the same order; `what` names it in
  // reports.
  virtual std::vector<std::string> all_gather(const std::string& mine, const char* what) = 0;
  void barrier(const char* what) { all_gather({}, what); }
  // Smallest and largest of what the ranks gave.
  std::pair<int64_t, int64_t> extremes(int64_t mine, const char* what);
  // `text` of rank `root`. Throws Error where there is no such rank.
  std::string broadcast(const std::string& text, int root, const char* what);

  // What the collectives from here on belong to: their limit, and where they are in reports.
  virtual void enter(Section section, uint64_t step);
  // For what is watched elsewhere, as a GPU's collectives are: the limit in seconds, and "step 7".
  double limit() const { return options_.limit_of(section_); }
  std::string where() const;
  void tell(const std::string& line) const { options_.tell(line); }
  // Ends the process through GroupOptions::fail, on any thread.
  [[noreturn]] void fail(const std::string& report, Fault fault = Fault::communication);
  // For a report, on any thread: which of the others do not answer, and a line each from those that do. Takes a second.
  // Empty where they cannot be asked.
  virtual std::string ask_peers() { return {}; }
  // What connects them, for people: "MPI", "TCP"; empty for one rank alone.
  virtual std::string transport() const { return {}; }
  // All ranks have done their work: collective, and the last one; those that come after it throw Error.
  virtual void finish() = 0;

 protected:
  explicit Group(GroupOptions options = {}) : options_(std::move(options)) {}
  // The last words to them, before the process ends.
  virtual void tell_peers(const std::string&) {}
  // Throws Error where finished_ is set: `what` was asked for too late.
  void require_unfinished(const char* what) const;

  GroupOptions options_;
  std::atomic<Section> section_ = Section::setup;  // read by threads that watch
  std::atomic<uint64_t> step_ = 0;
  std::atomic<bool> finished_ = false;
  int rank_ = 0;
  std::vector<Place> places_{Place{}};
};

// A job of one process.
std::unique_ptr<Group> make_single_group(const GroupOptions& options = {});

// How the ranks of a job without MPI find each other.
struct TcpOptions {
  int rank = 0, size = 1;
  std::string address{};       // the host of rank 0: a name or a number
  int port = 0;                // where rank 0 listens
  std::string bind_address{};  // on which of its addresses; empty: on all, or on this machine's own if `address` is
  int listener = -1;           // a socket that listens there already, which rank 0 takes over
  std::string job{};           // who says something else belongs to another job
  // Which processes there are, as each of them was told; one that was told something else ends the job.
  std::string members{};
  // Where the other ranks reach this one; empty, 0: where it reaches rank 0 from, and any port that is free.
  std::string own_address{};
  int own_port = 0;
  // Each rank proves that it knows it. Without one anybody who reaches rank 0 can take a rank's place.
  std::string secret{};
  bool trust_network = false;  // ranks may meet over a network without a secret
};
// What launcher_rank() and these variables say: DTRAIN_MASTER_ADDR and DTRAIN_MASTER_PORT, else MASTER_ADDR and
// MASTER_PORT (the port after it under torchrun, which listens on MASTER_PORT itself: TORCHELASTIC_USE_AGENT_STORE),
// else the first host of a SLURM step and a port that follows from its job; DTRAIN_JOB_ID, else the launcher's own name
// of the job; and protect(). Throws Error(Fault::config) naming what is missing.
TcpOptions tcp_options_from(const Environment& environment);
// Sets what keeps strangers out: from DTRAIN_BIND_ADDR; DTRAIN_JOB_SECRET, of 16 characters at least, or the file that
// DTRAIN_JOB_SECRET_FILE names, which nobody but its owner may read; and DTRAIN_TRUST_NETWORK, 0 or 1. Throws
// Error(Fault::config) for what cannot be meant.
void protect(TcpOptions& tcp, const Environment& environment);

// Ranks that talk over TCP, by way of rank 0; at most 16 MiB per text. To sum host memory they connect with each other.
// What they say is authenticated by their secret, and not encrypted. Throws Error(Fault::config) where they would meet
// over a network without a secret, Error(Fault::communication) where they do not all come within start_limit,
// Error(Fault::resource) where rank 0 may open too few files.
std::unique_ptr<Group> make_tcp_group(const GroupOptions& options, const TcpOptions& tcp);

// The ranks that mpirun started, or srun with PMI; `ranks`: how many by the launcher's word, so that enough files may
// be open before MPI starts. Throws Error(Fault::config) in a build without MPI and where MPI has been started before,
// as a process can do once in its life; Error(Fault::resource) where too few files may be open,
// Error(Fault::communication) where MPI does not start.
std::unique_ptr<Group> make_mpi_group(const GroupOptions& options, int ranks);

// What a launcher's variables say (of mpirun, srun, torchrun, PyTorchJob, or DTRAIN_RANK) that this process is.
struct LauncherRank {
  int rank = -1, size = 0, local_rank = -1;  // -1, 0: not said
  std::string source{};                      // e.g. "OMPI_COMM_WORLD_RANK"; empty: no launcher
  bool without_mpi = false;                  // the launcher starts ranks that meet by tcp_options_from() alone
};
LauncherRank launcher_rank(const Environment& environment);

}  // namespace dtrain
