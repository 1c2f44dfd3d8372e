// What one training step is asked for, and what it reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libdtrain/train/loss.h"

namespace dtrain {

// What one step is asked for.
struct StepRequest {
  std::string signature{};  // tells apart the steps of a run that differ in shapes: each is recorded on its own
  bool l2_loss = false;     // the L2 term of the parameters before the update
  bool asks = false;        // a request to all ranks, e.g. to stop: StepReport::requests counts them
  bool record = true;       // false: it is run op by op where steps are replayed, too
};

// The device's time in seconds.
struct StepTimes {
  double step = 0;    // from the forward pass to the update
  double before = 0;  // where steps queue up: since the end of the one before, for input
  // Its parts. `reduce`: the wait for other ranks after the backward pass.
  double forward = 0, backward = 0, reduce = 0, update = 0;
};

struct StepReport {
  uint64_t step = 0;  // updates done, this one included
  float loss = 0;     // mean over the micro-steps and ranks, without the L2 term
  float learning_rate = 0;
  float l2_loss = 0;  // if asked for
  float gradient_norm = 0;
  std::vector<MetricValue> metrics{};  // those of the loss, over the micro-steps and ranks
  int requests = 0;                    // ranks whose StepRequest::asks was set: the same number on all
  bool finite = true;                  // false: the update was not applied, nor is any later one
  float loss_scale = 1;                // after this step
  uint64_t skipped = 0;                // updates left out so far, each of which halved the loss scale
  StepTimes times{};
  // The bytes that the device has moved at least: each op's inputs and outputs forward, and twice that backward.
  double bytes = 0;

  // The metric of this name; throws Error where the loss has none.
  double metric(const std::string& name) const;
};

}  // namespace dtrain
