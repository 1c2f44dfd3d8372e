#include "apps/detection/input.h"

namespace dtrain::detection {
namespace {

using Fields = data::DetectionFields;

std::vector<ImagePlace> places_of(const data::Batch& batch) {
  const auto sizes = batch.fields[Fields::sizes].span<float>();
  const auto originals = batch.fields[Fields::originals].span<float>();
  const auto ids = batch.fields[Fields::image_ids].span<int64_t>();
  std::vector<ImagePlace> places;
  for (size_t row = 0; row < ids.size(); ++row)
    places.push_back({batch.row_valid[row] ? ids[row] : -1, sizes[2 * row], sizes[2 * row + 1],
                      static_cast<int64_t>(originals[2 * row]), static_cast<int64_t>(originals[2 * row + 1])});
  return places;
}

}  // namespace

models::DetectionTruth DeviceBatch::truth() const {
  return {sizes(),
          fields[Fields::count],
          fields[Fields::boxes],
          fields[Fields::classes],
          {fields[Fields::run_ends], fields[Fields::run_begins], sizes()}};
}

Input::Input(Context& context, std::shared_ptr<data::DetectionDataset> dataset, const data::LoaderOptions& options,
             int micro_steps)
    : context_(context), loader_(std::move(dataset), options), micro_steps_(micro_steps) {}

std::optional<DeviceBatch> Input::next() {
  if (last_) last_->wait_until_copied();  // the loader reuses that memory
  const data::Batch* batch = loader_.next();
  if (!batch) return {};
  std::unique_ptr<BatchFeed>& feed = feeds_[batch->layout.variant];
  if (!feed) feed = std::make_unique<BatchFeed>(context_, micro_steps_);
  last_ = feed.get();
  places_ = places_of(*batch);
  return DeviceBatch{batch->layout.variant, feed->put(batch->fields), batch->samples, batch->cursor};
}

}  // namespace dtrain::detection
