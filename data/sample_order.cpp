#include "data/sample_order.h"

#include <algorithm>

#include "data/permutation.h"
#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

// floor(batches * part / all + 1/2): batches among the first `batches` that belong to `part` of `all` records.
// Increases by at most one per batch. Whole rounds of `all` batches are split off against overflow.
uint64_t share(uint64_t batches, uint64_t part, uint64_t all) {
  return batches / all * part + (2 * (batches % all) * part + all) / (2 * all);
}

// Seed of a group's permutations, so that groups of equal size differ.
uint64_t seed_of_group(uint64_t seed, size_t group) {
  constexpr uint64_t kStream = 0x67726f7570;
  if (group == 0) return seed;
  const Philox::Block words = Philox::block(seed, kStream, group);
  return uint64_t{words[0]} << 32 | words[1];
}

}  // namespace

SampleOrder::SampleOrder(uint64_t records, size_t groups, const std::function<size_t(uint64_t)>& group_of,
                         const Options& options)
    : options_(options), size_(records), groups_(groups) {
  DT_CHECK(records > 0 && groups > 0 && options.batch > 0 && options.repeats > 0, "an order of ", records,
           " records in ", groups, " groups, in batches of ", options.batch, ", each ", options.repeats, " times");
  // share() multiplies two record counts and doubles the product.
  DT_CHECK(groups == 1 || records < uint64_t{1} << 31, "an order of ", records, " records in ", groups,
           " groups: expected fewer than 2^31");
  groups_.front().size = records;
  if (groups > 1) {
    groups_.front().size = 0;
    for (uint64_t record = 0; record < records; ++record) {
      const size_t group = group_of(record);
      DT_CHECK(group < groups, "record ", record, " is of group ", group, " of ", groups);
      groups_[group].records.push_back(record);
      ++groups_[group].size;
    }
  }
  uint64_t first = 0, begin = 0;
  for (Group& group : groups_) {
    group.first = first;
    group.begin = begin;
    first += group.size;
    if (!options.training && group.size > 0) end_ = begin + group.size;
    begin += (group.size + options.batch - 1) / options.batch * options.batch;
  }
}

// Assigns batches group by group: each takes its share of the batches that earlier groups left.
SampleOrder::Turn SampleOrder::turn_of_batch(uint64_t batch) const {
  uint64_t left = size_;  // records of this and later groups
  for (size_t g = 0;; ++g) {
    const uint64_t later = left - groups_[g].size;
    const uint64_t before = share(batch, later, left);
    if (share(batch + 1, later, left) == before) return {g, batch - before};
    batch = before;
    left = later;
  }
}

size_t SampleOrder::evaluated_group(uint64_t value, uint64_t Group::*begin) const {
  size_t found = 0;
  for (size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].size > 0 && groups_[g].*begin <= value) found = g;
  return found;
}

SampleOrder::Turn SampleOrder::turn_at(uint64_t position) const {
  if (groups_.size() == 1) return {0, position};
  if (!options_.training) {
    const size_t group = evaluated_group(position, &Group::begin);
    return {group, position - groups_[group].begin};
  }
  const Turn turn = turn_of_batch(position / options_.batch);
  return {turn.group, turn.index * options_.batch + position % options_.batch};
}

size_t SampleOrder::group_of_batch(uint64_t position) const { return turn_at(position).group; }

SampleOrder::Place SampleOrder::at(uint64_t position) const {
  const Turn turn = turn_at(position);
  const Group& group = groups_[turn.group];
  Place place{turn.group, {.seed = options_.seed, .epoch = 0, .sample = 0, .position = position, .repetition = 0}};
  if (options_.training) {
    const uint64_t sample = turn.index / options_.repeats;
    place.key.repetition = turn.index % options_.repeats;
    place.key.epoch = sample / group.size;
    const Permutation order(group.size, seed_of_group(options_.seed, turn.group), place.key.epoch);
    place.key.sample = record_of(group, order(sample % group.size));
  } else {
    place.key.sample = turn.index < group.size ? record_of(group, turn.index) : size_ + turn.index - group.size;
  }
  return place;
}

uint64_t SampleOrder::position_after(uint64_t cursor) const {
  if (groups_.size() == 1) return cursor;
  uint64_t position = cursor, within = cursor;
  if (!options_.training) {
    if (cursor >= size_) return end_;
    const Group& group = groups_[evaluated_group(cursor, &Group::first)];
    within = cursor - group.first;
    position = group.begin + within;
  }
  DT_CHECK(within % options_.batch == 0, "loader: ", cursor, " samples consumed is no whole number of batches of ",
           options_.batch, ", which data of ", groups_.size(),
           " layouts needs: continue with the batch size and ranks "
           "that the run had");
  return position;
}

uint64_t SampleOrder::consumed_at(uint64_t position) const {
  if (options_.training) return position;
  const Group& group = groups_[evaluated_group(position, &Group::begin)];
  return group.first + std::min(position - group.begin, group.size);
}

}  // namespace dtrain::data
