// Elastic resume: continues a checkpoint with the same global batch on the same or another number of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dtrain/distributed/bucketer.h"
#include "dtrain/distributed/group.h"
#include "dtrain/run/run.h"

namespace dtrain {

// Settings that fix the samples of a step and the order of additions. Decide them before context, communicator and
// trainer are created.
struct RunShape {
  int64_t batch = 1;  // samples per rank and micro-step
  int micro_steps = 1;
  CommunicatorOptions gradients{};
  BucketOptions buckets{};
  bool tune_buckets = false;
  int threads = 0;             // compute threads, as CpuOptions::threads
  int cores = 1;               // usable by this process: upper limit of adopted threads
  std::string device = "cpu";  // or "gpu"
};

// Settings given explicitly by the user, which the checkpoint must not change; a notice warns that bits will differ.
struct ExplicitSettings {
  bool wire = false, algorithm = false, bucket_bytes = false, last_bucket_bytes = false;
  bool bucket_count = false;  // a number of buckets, whose bytes depend on the model: sizes stay unchanged
  bool threads = false;       // no notice for these
};

// If train_dir holds a checkpoint to continue, adapts `shape` and returns notices: the number of micro-steps is chosen
// so that the global batch, and with it samples, order and learning rate, continue unchanged; settings of the order of
// additions are adopted. Throws Error(Fault::config) if the ranks cannot share that batch, listing the numbers of ranks
// up to 4096 that can; Error(Fault::checkpoint) if the checkpoint's batch is invalid. Collective.
std::vector<std::string> elastic_resume(RunShape& shape, const ExplicitSettings& asked, const RunOptions& run,
                                        Group& group);

// Settings that fix the order of additions over ranks, for TrainState::settings.
std::map<std::string, std::string> summation_settings(const CommunicatorOptions& gradients,
                                                      const BucketOptions& buckets);

}  // namespace dtrain
