// Group: processes of a job and their host-side communication. Collectives on device memory belong to the Communicator.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/core/error.h"

namespace dtrain {

// Looks up an environment variable; null if unset. The engine never reads the environment itself: programs pass it in.
using Environment = std::function<const char*(const char* name)>;

// Section of a run; each has its own timeout.
enum class Section { setup, step, evaluation, checkpoint };

struct GroupOptions {
  // Timeouts of collectives per section, in seconds; checkpoints use step_limit.
  double setup_limit = 600, step_limit = 60, evaluation_limit = 600;
  double limit_of(Section section) const;
  // Timeout of the rendezvous; none: setup_limit.
  std::optional<double> start_limit{};
  // Receives one line when a rank is late or back. May be empty.
  std::function<void(const std::string&)> warn{};
  // Ends the process with the fault's exit code; does not return. Called on any thread that detects a peer that is
  // stopped, disconnected or out of step (Fault::communication), or that this rank cannot continue; the report names
  // rank and place. If empty, `warn` gets the report and the process exits with that code.
  std::function<void(const std::string& report, Fault fault)> fail{};
  // Calls `warn` or `fail` if set.
  void tell(const std::string& line) const;
  [[noreturn]] void end(const std::string& report, Fault fault = Fault::communication) const;
};

// Location of a process of the job.
struct Place {
  std::string host;
  int pid = 0;
  int local_rank = 0, local_size = 1;  // among the ranks of its host
  int node = 0;                        // index of its host, by lowest rank
};

class Group {
 public:
  // Without finish() the process leaves abnormally, after an error: the launcher then ends the other ranks.
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_.size()); }
  const std::vector<Place>& places() const { return places_; }  // by rank
  std::string name(int rank) const;                             // "rank 3 on host-b"

  // All-gather of texts, by rank. Blocks. All ranks make the same calls in the same order; `what` names the call in
  // reports.
  virtual std::vector<std::string> all_gather(const std::string& mine, const char* what) = 0;
  void barrier(const char* what) { all_gather({}, what); }
  // Minimum and maximum over ranks.
  std::pair<int64_t, int64_t> extremes(int64_t mine, const char* what);
  // Broadcast of `text` from rank `root`. Throws Error if there is no such rank.
  std::string broadcast(const std::string& text, int root, const char* what);

  // Sets the section of the collectives from here on: their timeout, and their place in reports.
  virtual void enter(Section section, uint64_t step);
  // For other watchdogs, e.g. of a GPU's collectives: timeout in seconds, and "step 7".
  double limit() const { return options_.limit_of(section_); }
  std::string where() const;
  void tell(const std::string& line) const { options_.tell(line); }
  // Ends the process through GroupOptions::fail; callable on any thread.
  [[noreturn]] void fail(const std::string& report, Fault fault = Fault::communication);
  // Report on peers, callable on any thread: silent ranks, and one line from each that answers. Takes a second. Empty
  // if they cannot be asked.
  virtual std::string ask_peers() { return {}; }
  // Transport, for messages: "MPI", "TCP"; empty for a single rank.
  virtual std::string transport() const { return {}; }
  // Orderly shutdown: collective, and the last one; later calls throw Error.
  virtual void finish() = 0;

 protected:
  explicit Group(GroupOptions options = {}) : options_(std::move(options)) {}
  // Last message to peers before the process ends.
  virtual void tell_peers(const std::string&) {}
  // Throws Error if finished_ is set; `what` names the call.
  void require_unfinished(const char* what) const;

  GroupOptions options_;
  std::atomic<Section> section_ = Section::setup;  // also read by watchdog threads
  std::atomic<uint64_t> step_ = 0;
  std::atomic<bool> finished_ = false;
  int rank_ = 0;
  std::vector<Place> places_{Place{}};
};

// Group of a single process.
std::unique_ptr<Group> make_single_group(const GroupOptions& options = {});

// Rendezvous of a job without MPI.
struct TcpOptions {
  int rank = 0, size = 1;
  std::string address{};       // host of rank 0: name or IP address
  int port = 0;                // of rank 0
  std::string bind_address{};  // address that rank 0 listens on; empty: all, or loopback if `address` is loopback
  int listener = -1;           // inherited listening socket that rank 0 takes over
  std::string job{};           // job id: connections of other jobs are rejected
  // Member list as given to each process; a different one ends the job.
  std::string members{};
  // Address where other ranks reach this one; empty, 0: source address of its connection to rank 0, any free port.
  std::string own_address{};
  int own_port = 0;
  // Shared secret for authentication. Without one anybody who reaches rank 0 can take a rank's place.
  std::string secret{};
  bool trust_network = false;  // allow a network without a secret
};
// From launcher_rank() and these variables: DTRAIN_MASTER_ADDR and DTRAIN_MASTER_PORT, else MASTER_ADDR and MASTER_PORT
// (the next port under torchrun, which listens on MASTER_PORT itself: TORCHELASTIC_USE_AGENT_STORE), else the first
// host of a SLURM step, or 127.0.0.1 for a step on one host, and a port derived from its job; DTRAIN_JOB_ID, else the
// launcher's job id; and protect().
// Throws Error(Fault::config) naming what is missing.
TcpOptions tcp_options_from(const Environment& environment);
// Access control from DTRAIN_BIND_ADDR; DTRAIN_JOB_SECRET, at least 16 characters, or the file named by
// DTRAIN_JOB_SECRET_FILE, readable by its owner only; and DTRAIN_TRUST_NETWORK, 0 or 1. Throws Error(Fault::config) for
// invalid values.
void protect(TcpOptions& tcp, const Environment& environment);

// Group over TCP. Texts go through rank 0, at most 16 MiB each; all-reduce of host memory uses a full mesh of
// connections. Messages are authenticated by the secret, not encrypted. Throws Error(Fault::config) for a network
// without a secret, Error(Fault::communication) if not all ranks arrive within start_limit, Error(Fault::resource) if
// rank 0 may open too few files.
std::unique_ptr<Group> make_tcp_group(const GroupOptions& options, const TcpOptions& tcp);

// Group over MPI: ranks started by mpirun, or by srun with PMIx. `ranks`: their number by the launcher, to raise the
// limit of open files before MPI starts. Loads Open MPI 4 or 5 (libmpi.so.40) at run time. Throws Error(Fault::config)
// if MPI was started before in this process; Error(Fault::resource) if Open MPI cannot be loaded or too few files may
// be open; Error(Fault::communication) if MPI fails to start.
std::unique_ptr<Group> make_mpi_group(const GroupOptions& options, int ranks);

// Rank from the environment of a launcher: mpirun, srun, torchrun, PyTorchJob, or DTRAIN_RANK.
struct LauncherRank {
  int rank = -1, size = 0, local_rank = -1;  // -1, 0: unknown
  std::string source{};                      // variable, e.g. "OMPI_COMM_WORLD_RANK"; empty: no launcher
  bool without_mpi = false;                  // the launcher has no MPI: rendezvous by tcp_options_from() only
};
LauncherRank launcher_rank(const Environment& environment);

}  // namespace dtrain
