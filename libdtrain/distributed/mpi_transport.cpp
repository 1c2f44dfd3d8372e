// Non-blocking MPI calls, one communicator per channel.
#include "libdtrain/distributed/mpi_transport.h"

#include "libdtrain/core/error.h"
#include "libdtrain/distributed/mpi_memory.h"
#include "libdtrain/distributed/mpi_places.h"

namespace dtrain::mpi {
namespace {

constexpr int kTag = 0;

class MpiTransport : public host::Transport {
 public:
  MpiTransport() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_FUNNELED)
      throw Error(Fault::communication, "this MPI does not allow threads beside its own");
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  }
  const char* name() const override { return "MPI"; }
  int rank() const override { return rank_; }
  const std::vector<Place>& places() const override { return places_; }

  // The first channel is opened before shared memory is unlinked: by then all ranks of the host have mapped it.
  int open_channel() override {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &channels_.emplace_back(MPI_COMM_NULL)), "MPI_Comm_dup");
    if (channels_.size() == 1) {
      places_ = gather_places();
      memory_ = unlink_memory(places_[static_cast<size_t>(rank_)].local_rank);
    }
    return static_cast<int>(channels_.size()) - 1;
  }

  Request send(int channel, int peer, const std::byte* bytes, size_t count) override {
    const Request request = free_slot();
    check(MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, peer, kTag, comm(channel), &requests_[request]),
          "MPI_Isend");
    return request;
  }
  Request receive(int channel, int peer, std::byte* bytes, size_t most) override {
    const Request request = free_slot();
    check(MPI_Irecv(bytes, static_cast<int>(most), MPI_BYTE, peer, kTag, comm(channel), &requests_[request]),
          "MPI_Irecv");
    return request;
  }
  bool done(Request request, size_t& count) override {
    int done = 0;
    MPI_Status status;
    check(MPI_Test(&requests_[request], &done, &status), "MPI_Test");
    if (!done) return false;
    count = bytes_of(status);
    free_.push_back(request);
    return true;
  }
  bool take(int channel, int& peer, std::string& text) override {
    int there = 0;
    MPI_Message message;
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, kTag, comm(channel), &there, &message, &status), "MPI_Improbe");
    if (!there) return false;
    peer = status.MPI_SOURCE;
    text.resize(bytes_of(status));
    check(MPI_Mrecv(text.data(), static_cast<int>(text.size()), MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return true;
  }
  void finish() override {
    name_again(memory_);
    check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  MPI_Comm comm(int channel) const { return channels_[static_cast<size_t>(channel)]; }
  static size_t bytes_of(const MPI_Status& status) {
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    return static_cast<size_t>(bytes);
  }
  Request free_slot() {
    if (free_.empty()) {
      free_.push_back(requests_.size());
      requests_.push_back(MPI_REQUEST_NULL);
    }
    const Request request = free_.back();
    free_.pop_back();
    return request;
  }

  int rank_ = 0;
  std::vector<Place> places_;
  std::string memory_;  // former path of the shared-memory segment
  std::vector<MPI_Comm> channels_;
  std::vector<MPI_Request> requests_;
  std::vector<Request> free_;
};

}  // namespace

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(Fault::communication, concat(call, ": ", std::string(text, static_cast<size_t>(length))));
}

void require_first_start() {
  int started_before = 0;
  check(MPI_Initialized(&started_before), "MPI_Initialized");
  DT_CHECK(!started_before, "MPI group: MPI was already started in this process and can start only once");
}

std::unique_ptr<host::Transport> start_mpi() { return std::make_unique<MpiTransport>(); }

}  // namespace dtrain::mpi
