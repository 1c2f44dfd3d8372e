// Where the elements of a Detector's parameter lie in another program's array.
#pragma once

#include "libdtrain/autograd/parameter.h"
#include "models/detection/weight_names.h"

namespace dtrain::models {

class ArrayArrangement {
 public:
  // `layer` is what foreign_name() says of the parameter.
  ArrayArrangement(const Parameter& parameter, ArrayOrder order, const LayerName& layer = {});
  // A buffer, [c].
  explicit ArrayArrangement(const Buffer& buffer);

  const Shape& theirs() const { return theirs_; }
  // Whether elements of ours have no counterpart there.
  bool leaves_out() const { return classes_ == ClassOrder::no_background; }
  // Calls copy(index in our parameter, index in their array) for all that have one.
  template <class Copy>
  void for_each(const Copy& copy) const {
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t other = their_row(row);
      if (other < 0) continue;
      int64_t ours = row * positions_ * channels_;
      for (int64_t position = 0; position < positions_; ++position)
        for (int64_t c = 0; c < channels_; ++c, ++ours) {
          const int64_t channel = bgr_ ? channels_ - 1 - c : c;
          copy(static_cast<size_t>(ours),
               static_cast<size_t>(other * row_step_ + position * position_step_ + channel * channel_step_));
        }
    }
  }

 private:
  // -1 where there is none.
  int64_t their_row(int64_t row) const;

  Shape theirs_{};
  // Ours is [rows, positions, channels]: positions of a filter, or of the image that a linear layer reads.
  int64_t rows_ = 1, positions_ = 1, channels_ = 1;
  int64_t row_step_ = 1, position_step_ = 1, channel_step_ = 1;  // in theirs
  ClassOrder classes_ = ClassOrder::background_first;
  int64_t background_rows_ = 1;
  bool bgr_ = false;
};

}  // namespace dtrain::models
