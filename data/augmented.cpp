#include "dtrain/data/augmented.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"
#include "dtrain/data/augment.h"

namespace dtrain::data {
namespace {

// Random stream of one augmentation, independent of the sample's crop and flip.
RandomStream stream_of(SampleKey key, uint64_t purpose) {
  constexpr uint64_t kStream = 0x6175676d656e74;
  const Philox::Block words = Philox::block(key.seed, kStream, purpose);
  key.seed = uint64_t{words[0]} << 32 | words[1];
  return sample_stream(key);
}

class AugmentedDataset final : public Dataset {
 public:
  AugmentedDataset(std::shared_ptr<Dataset> dataset, const SampleAugmentation& augmentation)
      : inner_(std::move(dataset)), augmentation_(augmentation), images_(inner_->layout().index("images")) {
    DT_CHECK(inner_->layouts().size() == 1, "augmentation of a data set of several layouts");
    const Field& field = inner_->layout().fields[images_];
    DT_CHECK(field.shape.rank() == 3 && field.shape[2] == 3 && (field.dtype == DType::u8 || field.dtype == DType::f32),
             "augmentation of images ", field.shape, " of type ", field.dtype, ", expected [h, w, 3] of u8 or f32");
    check(augmentation.erasing);
    layout_ = inner_->layout();
    if (augmentation.erasing.probability > 0)
      layout_.fields.push_back({.name = kErasedField, .shape = {6}, .dtype = DType::i32});
  }

  const BatchLayout& layout() const override { return layout_; }
  uint64_t size() const override { return inner_->size(); }
  const std::vector<uint64_t>& shard_begins() const override { return inner_->shard_begins(); }
  RecordLocation locate(uint64_t record) const override { return inner_->locate(record); }
  const std::vector<std::string>& faults() const override { return inner_->faults(); }
  std::unique_ptr<SampleReader> reader() const override;
  std::string identity() const override { return inner_->identity(); }
  std::string contents() const override { return inner_->contents(); }
  void prefetch(uint64_t record) const override { inner_->prefetch(record); }
  bool can_prefetch() const override { return inner_->can_prefetch(); }

 private:
  class Reader;

  std::shared_ptr<Dataset> inner_;
  SampleAugmentation augmentation_;
  size_t images_;
  BatchLayout layout_;
};

class AugmentedDataset::Reader final : public SampleReader {
 public:
  explicit Reader(const AugmentedDataset& dataset)
      : dataset_(dataset),
        inner_(dataset.inner_->reader()),
        image_(static_cast<int>(shape()[1]), static_cast<int>(shape()[0])) {}

  SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) override {
    SampleNotes notes = inner_->read(record, key, row);
    if (options().changes_pixels()) {
      if (field().dtype == DType::u8)
        change(key, row.span<uint8_t>(dataset_.images_));
      else
        change(key, row.span<float>(dataset_.images_));
    }
    erase(key, row);
    return notes;
  }

  std::optional<SampleNotes> defer(uint64_t record, const SampleKey& key, const Row& row,
                                   EncodedImage& image) override {
    if (options().changes_pixels()) return {};
    std::optional<SampleNotes> notes = inner_->defer(record, key, row, image);
    if (notes) erase(key, row);
    return notes;
  }

 private:
  const SampleAugmentation& options() const { return dataset_.augmentation_; }
  const Field& field() const { return dataset_.layout_.fields[dataset_.images_]; }
  const Shape& shape() const { return field().shape; }

  template <class Pixel>
  void change(const SampleKey& key, std::span<Pixel> pixels) {
    std::ranges::transform(pixels, image_.pixels.begin(), [](Pixel level) {
      if constexpr (std::is_same_v<Pixel, float>)
        return static_cast<uint8_t>(std::clamp(level, 0.0f, 255.0f) + 0.5f);
      else
        return level;
    });
    if (options().jitter.any()) {
      RandomStream random = stream_of(key, 0);
      jitter_colors(options().jitter, editor_, image_, random);
    }
    RandomStream random = stream_of(key, 1);
    for (const Change& made : draw_changes(options().policy, image_.width, image_.height, random))
      editor_.apply(made.op, made.magnitude, image_);
    std::copy_n(image_.pixels.begin(), pixels.size(), pixels.begin());
  }

  void erase(const SampleKey& key, const Row& row) {
    if (!(options().erasing.probability > 0)) return;
    RandomStream random = stream_of(key, 2);
    const Window window = draw_erased(options().erasing, image_.width, image_.height, random);
    const auto word = [&] { return static_cast<int32_t>(random.next()); };
    const std::array<int32_t, 6> words{window.x, window.y, window.x + window.width, window.y + window.height,
                                       word(),   word()};
    std::ranges::copy(words, row.span<int32_t>(dataset_.layout_.fields.size() - 1).begin());
  }

  const AugmentedDataset& dataset_;
  std::unique_ptr<SampleReader> inner_;
  Image image_;
  ImageEditor editor_;
};

std::unique_ptr<SampleReader> AugmentedDataset::reader() const { return std::make_unique<Reader>(*this); }

}  // namespace

std::shared_ptr<Dataset> augmented(std::shared_ptr<Dataset> dataset, const SampleAugmentation& augmentation) {
  DT_CHECK(dataset, "augmentation: no data set");
  if (!augmentation.any()) return dataset;
  return std::make_shared<AugmentedDataset>(std::move(dataset), augmentation);
}

}  // namespace dtrain::data
