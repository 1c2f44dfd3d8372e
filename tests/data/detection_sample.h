// Rows of a DetectionDataset in a form for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "dtrain/data/detection.h"
#include "dtrain/data/loader.h"
#include "tests/testing.h"

namespace dtrain::data {

inline DetectionDatasetOptions small_canvases() {
  return {.resize = {.min_short_edge = 40, .max_short_edge = 64, .max_size = 96}, .flip_probability = 0.5f};
}

// Decoded row.
struct SeenSample {
  std::vector<uint8_t> pixels;
  std::vector<float> sizes, originals, boxes;
  std::vector<int32_t> classes, begins, ends;
  int64_t id = 0;
  std::string variant;
  bool operator==(const SeenSample&) const = default;
};

template <class T>
std::vector<T> row_values(const Batch& batch, size_t field, int64_t row) {
  const std::span<const T> values = batch.fields[field].slice(row, row + 1).span<T>();
  return {values.begin(), values.end()};
}

inline SeenSample sample_of(const Batch& batch, int64_t row) {
  SeenSample sample{.pixels = row_values<uint8_t>(batch, DetectionFields::images, row),
                    .sizes = row_values<float>(batch, DetectionFields::sizes, row),
                    .originals = row_values<float>(batch, DetectionFields::originals, row),
                    .boxes = row_values<float>(batch, DetectionFields::boxes, row),
                    .classes = row_values<int32_t>(batch, DetectionFields::classes, row),
                    .begins = row_values<int32_t>(batch, DetectionFields::run_begins, row),
                    .ends = row_values<int32_t>(batch, DetectionFields::run_ends, row),
                    .id = row_values<int64_t>(batch, DetectionFields::image_ids, row)[0],
                    .variant = batch.layout.variant};
  const auto count = static_cast<size_t>(row_values<int32_t>(batch, DetectionFields::count, row)[0]);
  const auto runs = static_cast<size_t>(row_values<int32_t>(batch, DetectionFields::run_count, row)[0]);
  EXPECT_TRUE(std::all_of(sample.begins.begin() + static_cast<ptrdiff_t>(count), sample.begins.end(),
                          [&](int32_t begin) { return begin == static_cast<int32_t>(runs); }));
  sample.boxes.resize(4 * count);
  sample.classes.resize(count);
  sample.begins.resize(count + 1);
  sample.ends.resize(runs);
  return sample;
}

inline SeenSample read_sample(const DetectionDataset& dataset, uint64_t record, const SampleKey& key = {}) {
  const Batch batch = make_batch(dataset.layouts()[dataset.layout_of(record)], 1);
  EXPECT_EQ(dataset.reader()->read(record, key, {batch, 0}).damage, "");
  return sample_of(batch, 0);
}

// Samples of a loader, batch by batch.
inline std::vector<SeenSample> load(std::shared_ptr<Dataset> dataset, LoaderOptions options, int batches) {
  std::vector<std::unique_ptr<Loader>> ranks;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank)
    ranks.push_back(std::make_unique<Loader>(dataset, options));
  std::vector<SeenSample> samples;
  for (int b = 0; b < batches; ++b)
    for (auto& loader : ranks) {
      const Batch* batch = loader->next();
      for (int64_t row = 0; batch && row < batch->rows(); ++row)
        if (batch->row_valid[static_cast<size_t>(row)]) samples.push_back(sample_of(*batch, row));
    }
  return samples;
}

// Checks all invariants that a detector relies on. Without `masks` objects must have none.
inline void expect_sound(const SeenSample& sample, int64_t classes, bool masks = true) {
  const float height = sample.sizes[0], width = sample.sizes[1];
  const auto pixels = static_cast<int32_t>(height * width);
  for (size_t i = 0; i < sample.classes.size(); ++i) {
    ASSERT_GE(sample.classes[i], 1);
    ASSERT_LE(sample.classes[i], classes);
    const float* box = &sample.boxes[4 * i];
    ASSERT_TRUE(0 <= box[0] && box[0] < box[2] && box[2] <= width && 0 <= box[1] && box[1] < box[3] && box[3] <= height)
        << box[0] << ", " << box[1] << ", " << box[2] << ", " << box[3] << " in " << width << "x" << height;
    const auto begin = static_cast<size_t>(sample.begins[i]), end = static_cast<size_t>(sample.begins[i + 1]);
    ASSERT_EQ(begin < end, masks);
    if (!masks) continue;
    ASSERT_EQ(sample.ends[end - 1], pixels);
    ASSERT_TRUE(std::is_sorted(sample.ends.begin() + static_cast<ptrdiff_t>(begin),
                               sample.ends.begin() + static_cast<ptrdiff_t>(end)));
    // The set columns span the box; thin parts of a polygon may set none.
    if (end - begin < 3) continue;
    const auto rows = static_cast<int32_t>(height);
    const int32_t last = sample.ends[end - (sample.ends[end - 2] == pixels ? 1 : 2)];
    ASSERT_GE(sample.ends[begin] / rows, std::floor(box[0]) - 1);
    ASSERT_LE((last - 1) / rows, std::ceil(box[2]) + 1);
  }
}

}  // namespace dtrain::data
