// ImageSource: encoded images with labels, as files, archive members or other records; and the data set of a source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/kept_records.h"
#include "dtrain/data/cache.h"
#include "dtrain/data/dataset.h"
#include "dtrain/data/preprocess.h"

namespace dtrain::data {

// Random access to the images of a split, numbered from 0. Thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // As those of Dataset.
  virtual uint64_t size() const = 0;
  virtual const std::vector<uint64_t>& shard_begins() const = 0;
  virtual RecordLocation locate(uint64_t image) const = 0;
  virtual const std::vector<std::string>& faults() const = 0;
  virtual std::string identity() const = 0;
  virtual std::string contents() const = 0;
  // The label of an image that has one.
  virtual int64_t label(uint64_t image) const = 0;
  // All labels: any number of different ones in lists that were opened so.
  virtual std::vector<int64_t> labels(uint64_t image) const { return {label(image)}; }
  // Verified bytes of the image, which are in `buffer`. Throws Error(Fault::data).
  virtual std::span<const std::byte> read(uint64_t image, std::vector<std::byte>& buffer) const = 0;
  virtual void prefetch(uint64_t) const {}
  virtual bool can_prefetch() const { return false; }
};

// Output of a classifier for a stored label. Throws Error(Fault::data), naming `what`, unless label + offset lies in
// [0, classes).
int32_t output_of_label(int64_t label, int64_t classes, int64_t offset, const char* what);

// Rows have the layout labelled_images, or for multi-label data multi_labelled_images, with the shape of the
// preprocessing.
class ImageSourceDataset final : public Dataset {
 public:
  ImageSourceDataset(std::unique_ptr<const ImageSource> source, int64_t classes, int64_t label_offset,
                     const CacheOptions& cache, PreprocessorFactory preprocessors, bool multi_label = false);

  const BatchLayout& layout() const override { return layout_; }
  uint64_t size() const override { return source_->size(); }
  const std::vector<uint64_t>& shard_begins() const override { return source_->shard_begins(); }
  RecordLocation locate(uint64_t record) const override { return source_->locate(first_only_ ? 0 : record); }
  const std::vector<std::string>& faults() const override { return source_->faults(); }
  std::string identity() const override;
  std::string contents() const override { return source_->contents(); }
  void prefetch(uint64_t record) const override;
  bool can_prefetch() const override { return source_->can_prefetch() && !first_only_; }
  std::unique_ptr<SampleReader> reader() const override;

 private:
  class Reader;
  std::span<const std::byte> read(uint64_t record, std::vector<std::byte>& buffer) const;

  std::unique_ptr<const ImageSource> source_;
  int64_t classes_, label_offset_;
  bool first_only_, multi_label_;
  std::unique_ptr<KeptRecords> kept_;  // null: no memory cache
  BatchLayout layout_;
  PreprocessorFactory preprocessors_;
};

}  // namespace dtrain::data
