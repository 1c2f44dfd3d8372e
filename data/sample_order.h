// SampleOrder: sample at each stream position for data with several layouts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dtrain/data/dataset.h"

namespace dtrain::data {

// Records grouped by layout, so that every global batch has a single layout.
//
// Training: each group has an endless stream: sample p mod size of epoch p / size, each epoch a new random permutation.
// Every global batch takes the next samples of one group. Groups are interleaved in proportion to their sizes; in any
// run of batches the share of group g deviates by at most g + 1 batches. No sample is dropped, and a group's batches
// may straddle its epochs. With repeated augmentation each sample occurs several times in a row. Evaluation: group
// after group, each record once and in order, each group padded to whole batches.
//
// Stateless: everything is a function of the position, so that any rank can start anywhere.
class SampleOrder {
 public:
  struct Options {
    bool training = true;
    uint64_t seed = 0;
    uint64_t batch = 1;    // samples per global batch, over all ranks and micro-steps
    uint64_t repeats = 1;  // consecutive copies of each sample in training, with repetitions 0, 1, ...
  };
  // `group_of` maps each of `records` records to a group below `groups`. Throws Error for a group or an option out of
  // range.
  SampleOrder(uint64_t records, size_t groups, const std::function<size_t(uint64_t)>& group_of, const Options& options);

  struct Place {
    size_t group = 0;
    SampleKey key{};  // `sample` is at least the number of records for padding
  };
  Place at(uint64_t position) const;
  size_t group_of_batch(uint64_t position) const;  // of the global batch that contains `position`

  // Stream position after `cursor` samples, and the inverse. They differ in evaluation only, because of padding. Throws
  // Error with several groups unless the position is at the start of a batch.
  uint64_t position_after(uint64_t cursor) const;
  uint64_t consumed_at(uint64_t position) const;
  uint64_t end() const { return end_; }  // position after the last sample; UINT64_MAX in training

 private:
  struct Group {
    uint64_t size = 0;
    uint64_t first = 0;               // records in the preceding groups
    uint64_t begin = 0;               // first position in evaluation
    std::vector<uint64_t> records{};  // empty: the only group, with all records
  };
  // A group and an index in its stream.
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
