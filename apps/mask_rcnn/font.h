// The shapes of characters, as cells that are set or not.
#pragma once

#include <array>
#include <string_view>

namespace dtrain::mask_rcnn {

// A character: up to 5 columns and 9 rows of cells, of which the last two are below the baseline. All are false beside
// it, so that neighbours may be asked for.
class Glyph {
 public:
  // That of a printable character of ASCII. Throws Error for any other.
  explicit Glyph(char character);

  static constexpr int kRows = 9, kCapRows = 7;  // of all, and of capitals
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
