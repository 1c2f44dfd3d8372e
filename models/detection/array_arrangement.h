// Index mapping between a Detector's parameter and the array of another program.
#pragma once

#include "dtrain/autograd/parameter.h"
#include "dtrain/models/detection/weight_names.h"

namespace dtrain::models {

class ArrayArrangement {
 public:
  // `layer`: from foreign_name() of the parameter.
  ArrayArrangement(const Parameter& parameter, ArrayOrder order, const LayerName& layer = {});
  // Buffer, [c].
  explicit ArrayArrangement(const Buffer& buffer);

  const Shape& theirs() const { return theirs_; }
  // Whether some elements of our parameter have no counterpart in the array.
  bool leaves_out() const { return classes_ == ClassOrder::no_background; }
  // Calls copy(index in our parameter, index in their array) for all elements with a counterpart.
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
  // Row in their array; -1 if there is none.
  int64_t their_row(int64_t row) const;

  Shape theirs_{};
  // Our layout is [rows, positions, channels]; positions are filter taps, or pixels of the image that a linear layer
  // flattens.
  int64_t rows_ = 1, positions_ = 1, channels_ = 1;
  int64_t row_step_ = 1, position_step_ = 1, channel_step_ = 1;  // strides in their array
  ClassOrder classes_ = ClassOrder::background_first;
  int64_t background_rows_ = 1;
  bool bgr_ = false;
};

}  // namespace dtrain::models
