// Bitmap font.
#pragma once

#include <array>
#include <string_view>

namespace dtrain::mask_rcnn {

// A glyph: up to 5 columns and 9 rows of cells, the last two below the baseline. Cells outside of it are false.
class Glyph {
 public:
  // Glyph of a printable ASCII character. Throws Error for any other.
  explicit Glyph(char character);

  static constexpr int kRows = 9, kCapRows = 7;  // line height, and height of capitals
  int columns() const { return columns_; }       // 3 for the space, which has no cells
  bool at(int column, int row) const {
    return column >= 0 && column < columns_ && row >= 0 && row < kRows &&
           rows_[static_cast<size_t>(row)][static_cast<size_t>(column)] == '#';
  }

 private:
  std::array<std::string_view, kRows> rows_{};
  int columns_ = 0;
};

}  // namespace dtrain::mask_rcnn
