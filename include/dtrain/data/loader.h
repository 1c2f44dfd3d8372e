// Loader: worker threads that decode records into batches, in an order that is a pure function of (seed, epoch, index).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dtrain/data/dataset.h"

namespace dtrain::data {

// Interval of work or waiting in a loader thread, for traces.
struct LoaderWork {
  enum class Kind {
    fill,  // read, decoded and augmented a sample into a row
    room,  // waited for a free slot
    next,  // the consumer waited for its batch
  };
  Kind kind = Kind::fill;
  int worker = -1;      // 0-based; -1: the consumer
  uint64_t sample = 0;  // record of the row, for `fill`
  std::chrono::steady_clock::time_point begin{}, end{};
};

struct LoaderOptions {
  int64_t batch = 1;     // rows per rank
  bool training = true;  // shuffled and endless; else in order, once, with the last batch padded
  uint64_t seed = 0;
  uint64_t cursor = 0;  // start position in the stream: samples consumed over all ranks
  int repeats = 1;      // repeated augmentation in training: consecutive copies of each sample
  int rank = 0, ranks = 1;
  // Training with several layouts: samples of a step over all ranks and micro-steps, which share a layout. A multiple
  // of batch * ranks; 0: batch * ranks.
  int64_t group_batch = 0;
  int workers = 0;                         // at most kMaxThreads; 0: one per available core
  int slots = 3;                           // batches in memory, including the consumer's
  bool skip_bad_records = false;           // else the first bad record throws from next()
  uint64_t bad_record_budget = 1000;       // maximum number of distinct skipped records
  bool defer_decoding = false;             // to a device, where the data set supports it
  std::shared_ptr<Allocator> allocator{};  // for the slots: pinned host memory for a GPU; null: pageable memory
  // Called by each thread for every interval; must not throw. Optional.
  std::function<void(const LoaderWork&)> report{};
};

struct LoaderStats {
  static constexpr size_t kNamed = 10;  // maximum length of the lists of records

  uint64_t records = 0;  // delivered by next(); of these:
  uint64_t damaged_images = 0;
  uint64_t oriented_images = 0;        // with an EXIF orientation other than 1
  uint64_t turned_images = 0;          // rotated by their EXIF orientation
  uint64_t deferred = 0;               // decoded by a device
  uint64_t bad_records = 0;            // skipped, each counted once
  uint64_t unreachable = 0;            // bad records found while opening the data set, equal on all ranks
  double wait_seconds = 0;             // spent waiting in next()
  std::vector<std::string> faults{};   // first few bad records: file, offset, record, reason
  std::vector<std::string> damages{};  // first few damaged images, in the same form

  // Merges the statistics of another loader; lists are merged without duplicates, up to kNamed.
  void add(const LoaderStats& other);
};

// Position p of the endless stream is sample p mod size of epoch p / size; each epoch is a new random permutation of
// all records. Global batch g starts at position cursor + g * batch * ranks. Rank r takes the r-th run of `batch`
// positions, so that the ranks' batches concatenated equal the batch of a single rank. In training a skipped bad record
// is replaced by the next good one of its shard; no other position changes. With several layouts, each layout has such
// a stream, and a batch has one layout on all ranks: see SampleOrder. Cursors are then at the end of a step.
class Loader {
 public:
  // Throws Error for options out of range, an empty data set, and damaged shards unless skipped.
  explicit Loader(std::shared_ptr<Dataset> dataset, const LoaderOptions& options = {});
  ~Loader();
  // Returns the next batch, or null at the end of an evaluation pass, after the same number of batches on every rank.
  // The batch occupies a slot of the loader until the next call. In evaluation, skipped bad records are padding rows.
  // Rethrows a worker's Error, with file, offset and record, when its batch is due.
  const Batch* next();
  // Decodes a deferred row of the current batch on the host because the device cannot. Bad records are handled as in
  // next(): the row may become another sample or padding, or this throws.
  void decode(int64_t row);
  LoaderStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
