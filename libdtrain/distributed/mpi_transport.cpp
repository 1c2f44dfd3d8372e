// Non-blocking MPI calls, one communicator per channel.
#include "libdtrain/distributed/mpi_transport.h"

#include <chrono>
#include <thread>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/mpi_memory.h"
#include "libdtrain/distributed/mpi_places.h"
#include "libdtrain/distributed/open_mpi.h"

namespace dtrain::mpi {
namespace {

constexpr int kTag = 0;

class MpiTransport : public host::Transport {
 public:
  MpiTransport() {
    int provided = 0;
    check(mpi_.init_thread(nullptr, nullptr, kThreadFunneled, &provided), "MPI_Init_thread");
    if (provided < kThreadFunneled) throw Error(Fault::communication, "this MPI does not allow threads beside its own");
    check(mpi_.comm_set_errhandler(mpi_.comm_world, mpi_.errors_return), "MPI_Comm_set_errhandler");
    check(mpi_.comm_rank(mpi_.comm_world, &rank_), "MPI_Comm_rank");
  }
  const char* name() const override { return "MPI"; }
  int rank() const override { return rank_; }
  const std::vector<Place>& places() const override { return places_; }

  // The first channel is opened before shared memory is unlinked: by then all ranks of the host have mapped it.
  int open_channel() override {
    check(mpi_.comm_dup(mpi_.comm_world, &channels_.emplace_back()), "MPI_Comm_dup");
    if (channels_.size() == 1) {
      places_ = gather_places();
      memory_ = unlink_memory(places_[static_cast<size_t>(rank_)].local_rank);
    }
    return static_cast<int>(channels_.size()) - 1;
  }

  Request send(int channel, int peer, const std::byte* bytes, size_t count) override {
    const Request request = free_slot();
    check(mpi_.isend(bytes, static_cast<int>(count), mpi_.byte, peer, kTag, comm(channel), &requests_[request]),
          "MPI_Isend");
    return request;
  }
  Request receive(int channel, int peer, std::byte* bytes, size_t most) override {
    const Request request = free_slot();
    check(mpi_.irecv(bytes, static_cast<int>(most), mpi_.byte, peer, kTag, comm(channel), &requests_[request]),
          "MPI_Irecv");
    return request;
  }
  bool done(Request request, size_t& count) override {
    int done = 0;
    Status status;
    check(mpi_.test(&requests_[request], &done, &status), "MPI_Test");
    if (!done) return false;
    count = bytes_of(status);
    free_.push_back(request);
    return true;
  }
  bool take(int channel, int& peer, std::string& text) override {
    int there = 0;
    Message message;
    Status status;
    check(mpi_.improbe(kAnySource, kTag, comm(channel), &there, &message, &status), "MPI_Improbe");
    if (!there) return false;
    peer = status.source;
    text.resize(bytes_of(status));
    check(mpi_.mrecv(text.data(), static_cast<int>(text.size()), mpi_.byte, &message, nullptr), "MPI_Mrecv");
    return true;
  }
  void finish() override {
    name_again(memory_);
    check(mpi_.finalize(), "MPI_Finalize");
  }

 private:
  Comm comm(int channel) const { return channels_[static_cast<size_t>(channel)]; }
  size_t bytes_of(const Status& status) const {
    int bytes = 0;
    check(mpi_.get_count(&status, mpi_.byte, &bytes), "MPI_Get_count");
    return static_cast<size_t>(bytes);
  }
  Request free_slot() {
    if (free_.empty()) {
      free_.push_back(requests_.size());
      requests_.push_back(mpi_.request_null);
    }
    const Request request = free_.back();
    free_.pop_back();
    return request;
  }

  const OpenMpi& mpi_ = open_mpi();
  int rank_ = 0;
  std::vector<Place> places_;
  std::string memory_;  // former path of the shared-memory segment
  std::vector<Comm> channels_;
  std::vector<mpi::Request> requests_;
  std::vector<Request> free_;
};

}  // namespace

void check(int code, const char* call) {
  if (code == kSuccess) return;
  char text[kMaxErrorString] = "";
  int length = 0;
  open_mpi().error_string(code, text, &length);
  const std::string reason(text, static_cast<size_t>(length));
  // Leaves mpirun time to end the job for the failed rank, whose name and signal it prints, and whose code it returns.
  if (reason.starts_with("MPI_ERR_PROC_FAILED")) std::this_thread::sleep_for(std::chrono::seconds(1));
  throw Error(Fault::communication, concat(call, ": ", reason));
}

void require_first_start() {
  int started_before = 0;
  check(open_mpi().initialized(&started_before), "MPI_Initialized");
  DT_CHECK(!started_before, "MPI group: MPI was already started in this process and can start only once");
}

std::unique_ptr<host::Transport> start_mpi() { return std::make_unique<MpiTransport>(); }

}  // namespace dtrain::mpi
