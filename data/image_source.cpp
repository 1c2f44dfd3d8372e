#include "data/image_source.h"

#include <algorithm>
#include <utility>

#include "dtrain/core/error.h"
#include "dtrain/data/imagenet.h"

namespace dtrain::data {

int32_t output_of_label(int64_t label, int64_t classes, int64_t offset, const char* what) {
  const int64_t first = -offset, last = first + classes - 1;
  if (label < first || label > last)
    throw Error(Fault::data, concat(what, " is ", label, ", expected ", first, " to ", last, " (", classes,
                                    " classes, label offset ", offset, ")"));
  return static_cast<int32_t>(label - first);
}

class ImageSourceDataset::Reader final : public SampleReader {
 public:
  explicit Reader(const ImageSourceDataset& dataset) : dataset_(dataset), preprocessor_(dataset.preprocessors_()) {
    DT_CHECK(preprocessor_, "image data set: the preprocessing factory returned null");
  }

  SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) override {
    return preprocessor_->run(encoded(record, row), {}, key, row.raw(0));
  }

  std::optional<SampleNotes> defer(uint64_t record, const SampleKey& key, const Row& row,
                                   EncodedImage& image) override {
    return preprocessor_->defer(encoded(record, row), {}, key, image);
  }

 private:
  // Fills label or targets.
  std::span<const std::byte> encoded(uint64_t record, const Row& row) {
    if (dataset_.first_only_) record = 0;
    const auto output = [&](int64_t label) {
      return output_of_label(label, dataset_.classes_, dataset_.label_offset_, "the label");
    };
    if (dataset_.multi_label_) {
      const std::span<float> targets = row.span<float>(1);
      std::ranges::fill(targets, 0.0f);
      for (const int64_t label : dataset_.source_->labels(record)) targets[static_cast<size_t>(output(label))] = 1;
      row.span<float>(2)[0] = 1;
    } else {
      row.span<int32_t>(1)[0] = output(dataset_.source_->label(record));
    }
    return dataset_.read(record, buffer_);
  }

  const ImageSourceDataset& dataset_;
  std::unique_ptr<Preprocessor> preprocessor_;
  std::vector<std::byte> buffer_;
};

ImageSourceDataset::ImageSourceDataset(std::unique_ptr<const ImageSource> source, int64_t classes, int64_t label_offset,
                                       const CacheOptions& cache, PreprocessorFactory preprocessors, bool multi_label)
    : source_(std::move(source)),
      classes_(classes),
      label_offset_(label_offset),
      first_only_(cache.first_record_only),
      multi_label_(multi_label),
      kept_(cache.keeps_records ? std::make_unique<KeptRecords>() : nullptr),
      layout_(multi_label ? multi_labelled_images(preprocessors.shape, preprocessors.dtype, classes)
                          : labelled_images(preprocessors.shape, preprocessors.dtype)),
      preprocessors_(std::move(preprocessors)) {
  DT_CHECK(preprocessors_.make, "image data set without preprocessing");
  DT_CHECK(classes_ > 0 && classes_ <= INT32_MAX, "image data set of ", classes_, " classes");
  DT_CHECK(label_offset_ > INT32_MIN && label_offset_ < INT32_MAX, "label offset ", label_offset_);
}

std::string ImageSourceDataset::identity() const {
  return first_only_ ? source_->identity() + "the first record for all\n" : source_->identity();
}

std::unique_ptr<SampleReader> ImageSourceDataset::reader() const { return std::make_unique<Reader>(*this); }

std::span<const std::byte> ImageSourceDataset::read(uint64_t record, std::vector<std::byte>& buffer) const {
  if (!kept_) return source_->read(record, buffer);
  const auto kept = kept_->find(record);
  return kept ? *kept : kept_->keep(record, source_->read(record, buffer));
}

void ImageSourceDataset::prefetch(uint64_t record) const {
  if (!kept_ || !kept_->find(record)) source_->prefetch(record);
}

}  // namespace dtrain::data
