// Fault injection for tests of failing ranks, in builds with DTRAIN_FAULTS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/distributed/communicator.h"

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
  // `text`: faults such as "rank=1,step=7,kind=kill", separated by ';'; those of this rank are injected. Throws
  // Error(Fault::config) for malformed text, an unknown rank, and any text in builds without fault injection.
  Faults(const std::string& text, int rank, int size);

  // Wraps the gradients' communicator to inject `nan` and `skip_collective`.
  std::unique_ptr<Communicator> around(std::unique_ptr<Communicator> communicator, Context& context);
  // Step `step` begins on this rank: injects kill, hang, exception, bitflip, slow.
  void begin_step(uint64_t step, ParameterStore& store);
  // The evaluation after step `step` was recorded, before its consequences: injects kill_evaluated.
  void evaluated(uint64_t step);
  // The step took `seconds` of this rank's own time, the base of a `slow` factor.
  void end_step(double seconds);
  // Whether an all-reduce of `step` is to be faulty, which a captured step cannot be.
  bool breaks_all_reduce(uint64_t step) const;
  // True once per fault, in its step.
  bool take(FaultKind kind);

 private:
  std::vector<PlannedFault> planned_;
  uint64_t step_ = 0;
};

}  // namespace dtrain
