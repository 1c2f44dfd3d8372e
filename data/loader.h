// Loader: worker threads that turn records into batches, in an order that depends on (seed, epoch, sample index) alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libdtrain/core/tensor.h"

namespace dtrain::data {

// Where a record is: what an error about it names.
struct RecordLocation {
  std::string file;
  uint64_t offset = 0, record = 0;
};

// The key of one sample's augmentation: equal for any number of ranks and workers.
struct SampleKey {
  uint64_t seed = 0, epoch = 0, sample = 0;
  uint64_t position = 0;  // in the endless stream: "odd batch position" means odd here
};

// What a Loader reads: records of any number of shards, numbered from 0 in file order.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual uint64_t size() const = 0;
  // First record of each shard, and size() at the end: where the replacement of a bad record is looked for.
  virtual const std::vector<uint64_t>& shard_begins() const = 0;
  virtual RecordLocation locate(uint64_t record) const = 0;
  // Decodes, crops and augments record `record` into `pixels` (image_shape x dtype of the Loader); returns its label.
  // Throws Error(Fault::data) on a bad record. Called from many threads.
  virtual int32_t load(uint64_t record, const SampleKey& key, void* pixels) = 0;
  // Ordered file names and sizes: what must be equal on resume.
  virtual std::string identity() const = 0;
};

struct LoaderOptions {
  int64_t batch = 1;              // per rank
  int64_t height = 0, width = 0;  // of the images
  DType dtype = DType::u8;        // of the pixels: u8 or f32
  bool training = true;           // shuffled and endless; else in order, once, the last batch padded with label -1
  uint64_t seed = 0;
  uint64_t cursor = 0;  // samples consumed, over all ranks: where the stream starts
  int rank = 0, ranks = 1;
  int workers = 0;                // 0: one per available core
  int slots = 3;                  // batches in memory
  bool skip_bad_records = false;  // else the first bad record throws from next()
  uint64_t bad_record_budget = 1000;
};

// Valid until the next call of next(): its tensors are a slot of the loader.
struct Batch {
  Tensor images;                  // [batch, height, width, 3], host memory
  Tensor labels;                  // [batch] i32; -1 in the padding of the last evaluation batch
  std::vector<uint64_t> samples;  // record numbers in the data set
  int64_t valid = 0;              // rows that are not padding
  uint64_t cursor = 0;            // samples consumed, over all ranks, once this batch is trained on
};

struct LoaderStats {
  uint64_t records = 0, bad_records = 0, damaged_images = 0;
  double wait_seconds = 0;          // time next() spent waiting
  std::vector<std::string> faults;  // the first few bad records: file, offset, record, reason
};

class Loader {
 public:
  Loader(std::shared_ptr<Dataset> dataset, const LoaderOptions& options);
  ~Loader();
  // The next batch, or null at the end of an evaluation pass. Rethrows a worker's Error with file, offset and record.
  const Batch* next();
  LoaderStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
