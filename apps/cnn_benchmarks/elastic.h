// Going on from a checkpoint as it was trained, on as many ranks or on others.
#pragma once

#include <map>
#include <string>

#include "apps/cnn_benchmarks/config.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::cnn_benchmarks {

// Where train_dir holds a checkpoint that this run will go on from, the number of micro-steps is set so that the global
// batch stays that of the checkpoint, with a notice: samples, order and learning rate go on as they would have on the
// ranks of before. Throws Error(Fault::config) where the ranks cannot share that batch, with those numbers that can.
// What fixes the order of sums (the all-reduce, its buckets, threads) is taken over from there as well, unless the
// command line asks for something else: then a notice says that bits will differ. Collective.
void keep_checkpoint(Config& config, const cli::FlagSet& set, Group& group);

// What fixes the order of sums over ranks, for TrainState::settings.
std::map<std::string, std::string> summation_settings(const CommunicatorOptions& gradients,
                                                      const BucketOptions& buckets);

}  // namespace dtrain::cnn_benchmarks
