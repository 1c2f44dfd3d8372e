// StepRequest and StepReport: options and results of a training step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/train/loss.h"

namespace dtrain {

// Options of a step.
struct StepRequest {
  std::string signature{};  // distinguishes steps of different shapes: each signature is captured separately
  bool l2_loss = false;     // compute the L2 term of the parameters, before the update
  bool asks = false;        // send a request to all ranks, e.g. to stop: counted in StepReport::requests
  bool capture = true;      // false: run this step eagerly, without CUDA graph
};

// Device times in seconds.
struct StepTimes {
  double step = 0;    // from forward to update
  double before = 0;  // with steps in flight: idle time since the end of the previous step, waiting for input
  // Parts of the step. `reduce`: wait for other ranks after the backward pass.
  double forward = 0, backward = 0, reduce = 0, update = 0;
};

struct StepReport {
  uint64_t step = 0;  // updates done, including this one
  float loss = 0;     // mean over micro-steps and ranks, without the L2 term
  float learning_rate = 0;
  float l2_loss = 0;  // if requested
  float gradient_norm = 0;
  std::vector<MetricValue> metrics{};  // of the loss, over micro-steps and ranks
  int requests = 0;                    // ranks that set StepRequest::asks, equal on all ranks
  bool finite = true;                  // false: neither this nor any later update is applied
  float loss_scale = 1;                // after this step
  uint64_t skipped = 0;                // updates skipped so far, each of which halved the loss scale
  StepTimes times{};
  // Lower bound of memory traffic in bytes: inputs and outputs of each op, once forward and twice backward.
  double bytes = 0;

  // Metric of this name; throws Error if the loss has none.
  double metric(const std::string& name) const;
};

}  // namespace dtrain
