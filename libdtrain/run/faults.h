// Faults on purpose, for tests of what a job does when a rank fails. Builds with DTRAIN_FAULTS make them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/distributed/communicator.h"

namespace dtrain {

enum class FaultKind { kill, hang, exception, nan, bitflip, slow, skip_collective };

// "rank=1,step=7,kind=kill"
struct PlannedFault {
  int rank = 0;
  uint64_t step = 0;  // counted as by checkpoints
  FaultKind kind = FaultKind::kill;
  double seconds = 1, factor = 0;  // of `slow`
};

// Several faults have ';' between them. Throws Error(Fault::config) that says what is expected. In builds with
// DTRAIN_FAULTS only.
std::vector<PlannedFault> parse_faults(const std::string& text);

class Faults {
 public:
  // Those of `text`, as parse_faults() reads it, that are meant for this rank. Throws Error(Fault::config) where there
  // are some and this build makes none, or where one names no rank of the job.
  Faults(const std::string& text, int rank, int size);

  // The communicator of the gradients, through which `nan` and `skip_collective` come.
  std::unique_ptr<Communicator> around(std::unique_ptr<Communicator> communicator, Context& context);
  // Step `step` begins on this rank: kill, hang, exception, bitflip, slow.
  void begin_step(uint64_t step, ParameterStore& store);
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
