// MpiGroup: ranks started by mpirun, and their communication thread.
#pragma once

#include "libdtrain/distributed/collective_thread.h"

namespace dtrain::mpi {

class MpiGroup : public host::AllReduceGroup {
 public:
  explicit MpiGroup(const GroupOptions& options);
  std::vector<std::string> all_gather(const std::string& mine, const char* what) override;
  void enter(Section section, uint64_t step) override {
    Group::enter(section, step);
    thread_.enter(section, step);
  }
  std::string ask_peers() override { return thread_.ask_peers(); }
  void finish() override;

  host::CollectiveThread& thread() override { return thread_; }
  std::string transport() const override { return "MPI"; }

 private:
  // All-gather of pieces of sizes `counts`, contiguous in `bytes`.
  void gather_bytes(std::byte* bytes, const std::vector<int64_t>& counts, const std::string& what);

  host::CollectiveThread thread_;
  int lane_ = 0;
};

}  // namespace dtrain::mpi
