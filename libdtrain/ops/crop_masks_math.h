// Pixel lookup in RLE masks and cells of a crop, shared by the CPU and CUDA kernels.
#pragma once

#include <cstdint>

#include "dtrain/ops/crop_masks.h"
#include "libdtrain/ops/roi_align_math.h"

namespace dtrain {

// Mask whose runs end at ends[begin], ..., ends[end - 1], in column-major pixel indices.
struct RleMask {
  const int32_t* ends;
  int32_t begin, end, height, width;

  DT_HD RoiAxis rows(const float* roi, const CropOptions& o) const {
    return RoiAxis::of(roi[1], roi[3], 1, o.height, o.sampling_ratio, o.aligned, height);
  }
  DT_HD RoiAxis columns(const float* roi, const CropOptions& o) const {
    return RoiAxis::of(roi[0], roi[2], 1, o.width, o.sampling_ratio, o.aligned, width);
  }
  // Weighted sum of two vertically adjacent pixels of column x.
  DT_HD float blend(int32_t x, const RoiTap& rows) const {
    const int64_t pixel = int64_t{x} * height + rows.low;
    int32_t low = begin, high = end;  // binary search: the run of `pixel` is the first that ends after it
    while (low < high) {
      const int32_t middle = low + (high - low) / 2;
      if (ends[middle] > pixel)
        high = middle;
      else
        low = middle + 1;
    }
    float sum = is_one(low) ? rows.low_weight : 0.0f;
    if (rows.high == rows.low) return sum;
    while (low < end && ends[low] <= pixel + 1) ++low;
    return is_one(low) ? sum + rows.high_weight : sum;
  }

 private:
  DT_HD bool is_one(int32_t run) const { return run < end && ((run - begin) & 1) != 0; }
};

// All masks of a batch.
struct RleTable {
  const int32_t *ends, *begins;
  const float* sizes;
  int64_t rows, per_row, capacity;

  explicit RleTable(const RleMasks& runs)
      : ends(runs.ends.data<int32_t>()),
        begins(runs.begins.data<int32_t>()),
        sizes(runs.sizes.data<float>()),
        rows(runs.begins.dim(0)),
        per_row(runs.begins.dim(1) - 1),
        capacity(runs.ends.dim(1)) {}
  DT_HD bool has(int64_t row, int64_t which) const { return row < rows && which < per_row; }
  DT_HD bool is_unknown(int64_t row, int64_t which) const {
    if (row < 0 || which < 0 || !has(row, which)) return false;
    const RleMask image = of(row, which);
    return image.begin >= image.end;
  }
  // Clamps inconsistent entries to the table's bounds.
  DT_HD RleMask of(int64_t row, int64_t which) const {
    const int32_t* const begin = begins + row * (per_row + 1) + which;
    return {ends + row * capacity, limited(begin[0]), limited(begin[1]), extent(sizes[2 * row]),
            extent(sizes[2 * row + 1])};
  }

 private:
  DT_HD int32_t limited(int64_t end) const {
    return static_cast<int32_t>(end < 0 ? 0 : end < capacity ? end : capacity);
  }
  DT_HD static int32_t extent(float size) { return size > 0 && size < 1 << 24 ? static_cast<int32_t>(size) : 0; }
};

// Mean over the samples of a cell.
DT_HD inline float crop_cell(const RleMask& image, const RoiAxis& rows, const RoiAxis& columns, int row, int column) {
  float sum = 0;
  for (int i = 0; i < rows.grid; ++i) {
    const RoiTap y = roi_tap(rows.at(row, i), image.height);
    if (!y.inside) continue;
    for (int j = 0; j < columns.grid; ++j) {
      const RoiTap x = roi_tap(columns.at(column, j), image.width);
      if (!x.inside) continue;
      sum += x.low_weight * image.blend(x.low, y);
      if (x.high != x.low) sum += x.high_weight * image.blend(x.high, y);
    }
  }
  return sum * roi_factor(rows, columns);
}

}  // namespace dtrain
