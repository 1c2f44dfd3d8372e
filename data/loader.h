// Loader: worker threads that turn records into batches, in an order that depends on (seed, epoch, sample index) alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dtrain::data {

// What a thread of a loader did.
struct LoaderWork {
  enum class Kind {
    fill,  // made a row of a sample: read, decoded and augmented it
    room,  // waited for a slot to fill
    next,  // the consumer waited for its batch
  };
  Kind kind = Kind::fill;
  int worker = -1;      // counted from 0; -1: the consumer
  uint64_t sample = 0;  // the record that the row was made of; of `fill`
  std::chrono::steady_clock::time_point begin{}, end{};
};

struct LoaderOptions {
  int64_t batch = 1;     // rows per rank
  bool training = true;  // shuffled and endless; else in order, once, the last batch padded with rows that hold nothing
  uint64_t seed = 0;
  uint64_t cursor = 0;  // samples consumed, over all ranks: where the stream starts
  int repeats = 1;      // repeated augmentation in training: times in a row that each sample comes, drawn anew
  int rank = 0, ranks = 1;
  // In training on data of several layouts: samples of a step, over all ranks and micro-steps, which are of one layout.
  // A multiple of batch * ranks; 0: that itself.
  int64_t group_batch = 0;
  int workers = 0;                         // up to kMaxThreads; 0: one per available core
  int slots = 3;                           // batches in memory, the one in the consumer's hands included
  bool skip_bad_records = false;           // else the first bad record throws from next()
  uint64_t bad_record_budget = 1000;       // different records skipped before next() throws after all
  bool defer_decoding = false;             // to a device, where the data set's reader can
  std::shared_ptr<Allocator> allocator{};  // for the slots: host memory, pinned for a GPU; null: plain pages
  // Called with all that the threads do, by each of them: it must not throw. Null: nobody is.
  std::function<void(const LoaderWork&)> report{};
};

struct LoaderStats {
  static constexpr size_t kNamed = 10;  // records that each of the lists names at most

  uint64_t records = 0;  // delivered by next(), of which:
  uint64_t damaged_images = 0;
  uint64_t oriented_images = 0;        // have an EXIF orientation other than 1
  uint64_t turned_images = 0;          // to which it was applied
  uint64_t deferred = 0;               // were left to a device to decode
  uint64_t bad_records = 0;            // skipped, each counted once
  uint64_t unreachable = 0;            // among the bad ones: found as the data set was opened, the same on all ranks
  double wait_seconds = 0;             // time next() spent waiting
  std::vector<std::string> faults{};   // the first few bad records: file, offset, record, reason
  std::vector<std::string> damages{};  // the first few damaged images, each once: the same

  // Adds the counts of another loader, and of the records that it names those that there is room for, each once.
  void add(const LoaderStats& other);
};

// Position p of the endless stream is sample p mod size of epoch p / size, each epoch a new random permutation of all
// records. Global batch g starts at position cursor + g * batch * ranks; rank r takes the r-th run of `batch` positions
// of it, so ranks concatenated equal one rank with the whole batch. In training a skipped bad record is replaced by the
// next good one of its shard; nothing else moves. Where the data set has several layouts, each of them has such a
// stream, and batches of all ranks are of one layout: see SampleOrder. The cursor is at the end of a step then.
class Loader {
 public:
  // Throws Error: options out of range, an empty data set, damaged shards that may not be skipped.
  Loader(std::shared_ptr<Dataset> dataset, const LoaderOptions& options);
  ~Loader();
  // The next batch, or null at the end of an evaluation pass: on every rank after the same number of batches. It has
  // the data set's layout, or one of them, and lies in a slot of the loader until next() is called again. Besides the
  // padding of the last batch, a bad record skipped in evaluation is a row that holds nothing. Rethrows a worker's
  // Error, with file, offset and record, where the batch it belongs to is due.
  const Batch* next();
  // Decodes after all what a row of that batch was to be made of, because the device cannot: by the rules of next(), so
  // that where the record is bad, the row may be another sample's then, or hold nothing, or this throws.
  void decode(int64_t row);
  LoaderStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
