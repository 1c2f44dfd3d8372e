// Loader: worker threads that turn records into batches, in an order that depends on (seed, epoch, sample index) alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/core/encoded_image.h"
#include "libdtrain/core/tensor.h"

namespace dtrain::data {

// Where a record is: what an error about it names.
struct RecordLocation {
  std::string file;
  uint64_t offset = 0;  // of the record's header, in bytes
  uint64_t record = 0;  // within the file
};

// The key of one sample's augmentation: equal for any number of ranks and workers.
struct SampleKey {
  uint64_t seed = 0, epoch = 0;
  uint64_t sample = 0;    // number of the planned record in the data set
  uint64_t position = 0;  // in the endless stream: "odd batch position" means odd here
};

struct Sample {
  int32_t label = -1;
  bool damaged = false;  // decoded, but not without warnings
};

// The pixels of one sample, as a SampleReader writes them.
struct SampleLayout {
  Shape shape{};            // [height, width, 3]
  DType dtype = DType::u8;  // u8 or f32
  size_t bytes() const { return static_cast<size_t>(shape.count()) * size_of(dtype); }
  bool operator==(const SampleLayout&) const = default;
};

// One worker's access to a Dataset: its buffers and its decoder. Used by one thread at a time.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // Decodes, crops and augments record `record` into `pixels`, of the layout that the Dataset says. A pure function of
  // its arguments. Throws Error(Fault::data) on a bad record: what is wrong with it; the Loader adds where it is.
  virtual Sample read(uint64_t record, const SampleKey& key, void* pixels) = 0;
  // Leaves that to a device: `image` is what the same pixels are made of. Nothing where only read() can do it.
  virtual std::optional<Sample> defer(uint64_t, const SampleKey&, EncodedImage&) { return {}; }
};

// What a Loader reads: records of any number of shards, numbered from 0 in file order.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual uint64_t size() const = 0;
  // First record of each shard, and size() at the end: where the replacement of a bad record is looked for.
  virtual const std::vector<uint64_t>& shard_begins() const = 0;
  virtual RecordLocation locate(uint64_t record) const = 0;
  // Damage found when the shards were opened: records that cannot be reached and are not numbered.
  virtual const std::vector<std::string>& faults() const = 0;
  // What its readers write: a Loader makes room for it.
  virtual SampleLayout layout() const = 0;
  virtual std::unique_ptr<SampleReader> reader() const = 0;
  // Ordered file names and sizes: what must be equal on resume.
  virtual std::string identity() const = 0;
};

struct LoaderOptions {
  int64_t batch = 1;     // per rank
  bool training = true;  // shuffled and endless; else in order, once, the last batch padded with label -1
  uint64_t seed = 0;
  uint64_t cursor = 0;  // samples consumed, over all ranks: where the stream starts
  int rank = 0, ranks = 1;
  int workers = 0;                         // 0: one per available core
  int slots = 3;                           // batches in memory, the one in the consumer's hands included
  bool skip_bad_records = false;           // else the first bad record throws from next()
  uint64_t bad_record_budget = 1000;       // different records skipped before next() throws after all
  bool defer_decoding = false;             // to a device, where the data set's reader can
  std::shared_ptr<Allocator> allocator{};  // of the slots: host memory, pinned for a GPU; null: plain pages
};

// Valid until the next call of next(): its tensors are a slot of the loader.
struct Batch {
  Tensor images;  // [batch, height, width, 3] of the data set's type, host memory
  // With defer_decoding, one for each row: where it has a JPEG, the row of `images` is yet to be made of it.
  std::span<const EncodedImage> encoded;
  Tensor labels;                  // [batch] i32; -1 in padding, and for a bad record skipped in evaluation: zero pixels
  std::vector<uint64_t> samples;  // record numbers in the data set
  int64_t valid = 0;              // rows whose label is not -1
  uint64_t cursor = 0;            // samples consumed, over all ranks, once this batch is trained on
};

struct LoaderStats {
  uint64_t records = 0;  // delivered by next()
  uint64_t bad_records = 0, damaged_images = 0;
  uint64_t deferred = 0;            // of the records: left to a device to decode
  double wait_seconds = 0;          // time next() spent waiting
  std::vector<std::string> faults;  // the first few bad records: file, offset, record, reason
};

// Position p of the endless stream is sample p mod size of epoch p / size, each epoch a new random permutation of all
// records. Global batch g starts at position cursor + g * batch * ranks; rank r takes the r-th run of `batch` positions
// of it, so ranks concatenated equal one rank with the whole batch. In training a skipped bad record is replaced by the
// next good one of its shard; nothing else moves.
class Loader {
 public:
  // Throws Error: options out of range, an empty data set, a layout without elements, damaged shards that may not be
  // skipped.
  Loader(std::shared_ptr<Dataset> dataset, const LoaderOptions& options);
  ~Loader();
  // The next batch, or null at the end of an evaluation pass: on every rank after the same number of batches. Rethrows
  // a worker's Error, with file, offset and record, where the batch it belongs to is due.
  const Batch* next();
  // Decodes after all what a row of that batch was to be made of, because the device cannot: in `images`, by the rules
  // of next(), so that where the record is bad, label and sample may be another one's then, or this throws.
  void decode(int64_t row);
  LoaderStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
