// SampleOrder: which sample comes at which place of the stream, where samples of several layouts take turns.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/dataset.h"

namespace dtrain::data {

// The records of a data set in groups, one for each layout, so that every global batch is of one layout.
//
// Training: each group has a stream of its own, which never ends: sample p of it is sample p mod size of its epoch p /
// size, each epoch a new random permutation of its records. Global batch after global batch takes the next samples of
// one group; in any run of batches each group has its share, by its size, to within a batch for each group before it
// and one more. So nothing is dropped, and a group's batches straddle its epochs. With repeated augmentation a stream
// has each sample several times in a row, and its epochs are as many times as long. Evaluation: group after group, the
// records of each in order and once, each group filled up to whole batches by places that hold nothing.
//
// All is a function of the position, without a state: any rank begins anywhere.
class SampleOrder {
 public:
  struct Options {
    bool training = true;
    uint64_t seed = 0;
    uint64_t batch = 1;    // samples of a global batch, over all ranks and micro-steps
    uint64_t repeats = 1;  // times in a row that each sample comes in training, as repetitions 0, 1, ...
  };
  // `group_of` gives the group, under `groups`, of each of `records` records. Throws Error where that or an option is
  // out of range.
  SampleOrder(uint64_t records, size_t groups, const std::function<size_t(uint64_t)>& group_of, const Options& options);

  struct Place {
    size_t group = 0;
    SampleKey key{};  // `sample` is at least the number of records where the place holds nothing
  };
  Place at(uint64_t position) const;
  size_t group_of_batch(uint64_t position) const;  // that of the global batch which `position` is in

  // Where the stream goes on once `cursor` samples are consumed, and the reverse. They differ in evaluations alone,
  // where places hold nothing. Throws Error where there are several groups and that is not where a batch begins.
  uint64_t position_after(uint64_t cursor) const;
  uint64_t consumed_at(uint64_t position) const;
  uint64_t end() const { return end_; }  // the position after the last sample; UINT64_MAX in training

 private:
  struct Group {
    uint64_t size = 0;
    uint64_t first = 0;               // records in the groups before it
    uint64_t begin = 0;               // its first position in evaluations
    std::vector<uint64_t> records{};  // by number within the group; empty where the only group is all records
  };
  // A group, and which of its own samples.
  struct Turn {
    size_t group = 0;
    uint64_t index = 0;
  };
  Turn turn_of_batch(uint64_t batch) const;
  Turn turn_at(uint64_t position) const;
  size_t evaluated_group(uint64_t value, uint64_t Group::*begin) const;
  uint64_t record_of(const Group& group, uint64_t number) const {
    return group.records.empty() ? number : group.records[number];
  }

  Options options_;
  uint64_t size_;
  uint64_t end_ = UINT64_MAX;
  std::vector<Group> groups_;
};

}  // namespace dtrain::data
