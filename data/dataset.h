// Dataset: records by number, and the reader that makes a row of a batch of each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/batch.h"

namespace dtrain::data {

// Where a record is: what an error about it names.
struct RecordLocation {
  std::string file;
  uint64_t offset = 0;  // where the record's header begins, in bytes
  uint64_t record = 0;  // within the file
  std::string name{};   // in place of both, where records have names: "image 5"

  // "FILE: record 7 at byte 1234", or "FILE: image 5".
  std::string text() const;
};

// The key of one sample's augmentation: equal for any number of ranks and workers.
struct SampleKey {
  uint64_t seed = 0, epoch = 0;
  uint64_t sample = 0;      // number of the planned record in the data set
  uint64_t position = 0;    // in the endless stream: "odd batch position" means odd here
  uint64_t repetition = 0;  // which one of the times that the sample comes in its epoch, counted from 0
};

// What is known of the image that a sample is made of.
struct SampleNotes {
  std::string damage{};   // ImageDecoder::damage(): pixels were lost; "" where the image is whole
  bool oriented = false;  // its EXIF orientation is not 1
  bool turned = false;    // and was applied
};

// One worker's access to a Dataset: its buffers and its decoder. Used by one thread at a time.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // Decodes, crops and augments record `record` into all fields of `row`, which has the record's layout. A pure
  // function of its arguments. Throws Error(Fault::data) on a bad record: what is wrong with it; the Loader adds where
  // it is.
  virtual SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) = 0;
  // Leaves the field "images" to a device: `image` is what the same pixels are made of. Returns nothing where only
  // read() can make them.
  virtual std::optional<SampleNotes> defer(uint64_t, const SampleKey&, const Row&, EncodedImage&) { return {}; }
};

// What a Loader reads: records of any number of shards, numbered from 0 in file order.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // The layout of the rows that its readers write, or the first of them.
  virtual const BatchLayout& layout() const = 0;
  // All of them, where records differ in shape, and the number of a record's own. Each has a name as its variant then.
  virtual std::span<const BatchLayout> layouts() const { return {&layout(), 1}; }
  virtual size_t layout_of(uint64_t) const { return 0; }
  virtual uint64_t size() const = 0;
  // First record of each shard, and size() at the end: where the replacement of a bad record is looked for.
  virtual const std::vector<uint64_t>& shard_begins() const = 0;
  virtual RecordLocation locate(uint64_t record) const = 0;
  // Damage found when the shards were opened: records that cannot be reached and are not numbered.
  virtual const std::vector<std::string>& faults() const = 0;
  virtual std::unique_ptr<SampleReader> reader() const = 0;
  // Ordered file names and sizes: what must be equal on resume.
  virtual std::string identity() const = 0;
  // The same with checksums of what the files hold: what must be equal on all ranks.
  virtual std::string contents() const { return identity(); }
};

}  // namespace dtrain::data
