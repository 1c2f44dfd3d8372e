// Dataset: indexed records, and the readers that decode them into batch rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dtrain/data/batch.h"

namespace dtrain::data {

// Location of a record for error messages.
struct RecordLocation {
  std::string file;
  uint64_t offset = 0;  // byte offset of the record's header
  uint64_t record = 0;  // index within the file
  std::string name{};   // replaces both for records with names: "image 5"

  // "FILE: record 7 at byte 1234", or "FILE: image 5".
  std::string text() const;
};

// Augmentation key of a sample, independent of the number of ranks and workers.
struct SampleKey {
  uint64_t seed = 0, epoch = 0;
  uint64_t sample = 0;      // index of the planned record in the data set
  uint64_t position = 0;    // in the endless stream, for augmentations that depend on it
  uint64_t repetition = 0;  // with repeated augmentation: 0-based copy of the sample within its epoch
};

// Observations while decoding an image.
struct SampleNotes {
  std::string damage{};   // ImageDecoder::damage(): lost pixels; "" for an intact image
  bool oriented = false;  // EXIF orientation other than 1
  bool turned = false;    // EXIF orientation was applied
};

// Per-worker access to a Dataset, with its buffers and decoder. Not thread-safe.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // Decodes, crops and augments record `record` into all fields of `row`, which has the record's layout. A pure
  // function of its arguments. Throws Error(Fault::data) with the problem of a bad record; the Loader adds its
  // location.
  virtual SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) = 0;
  // Deferred decoding: fills `image` with the input of the device's decoder instead of the field "images". Returns
  // nothing if only read() supports this record.
  virtual std::optional<SampleNotes> defer(uint64_t, const SampleKey&, const Row&, EncodedImage&) { return {}; }
};

// Input of a Loader: records of any number of shards, numbered in file order.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // Layout of the rows, or the first of several.
  virtual const BatchLayout& layout() const = 0;
  // All layouts, named by their variant, if records differ in shape; and the index of a record's layout.
  virtual std::span<const BatchLayout> layouts() const { return {&layout(), 1}; }
  virtual size_t layout_of(uint64_t) const { return 0; }
  virtual uint64_t size() const = 0;
  // First record of each shard, then size(). Replacements of bad records come from the same shard.
  virtual const std::vector<uint64_t>& shard_begins() const = 0;
  virtual RecordLocation locate(uint64_t record) const = 0;
  // Damage found while opening the shards: unreachable records, which have no number.
  virtual const std::vector<std::string>& faults() const = 0;
  virtual std::unique_ptr<SampleReader> reader() const = 0;
  // Hint that a record will be read soon, so that data in object storage is fetched. Does not wait.
  virtual void prefetch(uint64_t) const {}
  // Whether prefetch() does anything.
  virtual bool can_prefetch() const { return false; }
  // Ordered file names and sizes, which must be equal on resume.
  virtual std::string identity() const = 0;
  // The same with checksums of the contents, which must be equal on all ranks.
  virtual std::string contents() const { return identity(); }
};

}  // namespace dtrain::data
