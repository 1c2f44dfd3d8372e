// Faults on purpose, for tests of what a job does when a rank fails. Builds with DTRAIN_FAULTS make them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/distributed/communicator.h"

namespace dtrain {

enum class FaultKind { kill, kill_evaluated, hang, exception, nan, bitflip, slow, skip_collective };

struct PlannedFault {
  int rank = 0;
  uint64_t step = 0;  // counted as by checkpoints
  FaultKind kind = FaultKind::kill;
  double seconds = 1, factor = 0;  // for `slow`
};

class Faults {
 public:
  // `text`: faults such as "rank=1,step=7,kind=kill", with ';' between them; those for this rank are made. Throws
  // Error(Fault::config) where it is not of that form, where it names no rank of the job, or where it is not empty and
  // this build makes no faults.
  Faults(const std::string& text, int rank, int size);

  // The communicator of the gradients, through which `nan` and `skip_collective` come.
  std::unique_ptr<Communicator> around(std::unique_ptr<Communicator> communicator, Context& context);
  // Step `step` begins on this rank: kill, hang, exception, bitflip, slow.
  void begin_step(uint64_t step, ParameterStore& store);
  // The evaluation after step `step` has been recorded, and nothing has followed from it: kill_evaluated.
  void evaluated(uint64_t step);
  // It has taken `seconds` of this rank's own time: what `slow` by a factor goes by.
  void end_step(double seconds);
  // True where a sum of step `step` is to be faulty: no recorded step can be that.
  bool meddles_with_sums(uint64_t step) const;
  // True once per fault, in its step.
  bool take(FaultKind kind);

 private:
  std::vector<PlannedFault> planned_;
  uint64_t step_ = 0;
};

}  // namespace dtrain
