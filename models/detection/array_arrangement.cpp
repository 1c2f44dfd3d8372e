#include "models/detection/array_arrangement.h"

namespace dtrain::models {

ArrayArrangement::ArrayArrangement(const Buffer& buffer) : theirs_(buffer.shape), rows_(buffer.shape[0]) {}

ArrayArrangement::ArrayArrangement(const Parameter& parameter, ArrayOrder order, const LayerName& layer)
    : rows_(parameter.shape[0]), background_rows_(layer.outputs_per_class) {
  const Shape& shape = parameter.shape;
  const ParameterOptions& options = parameter.options();
  if (rows_ > background_rows_) classes_ = layer.classes;  // else the layer is class-agnostic
  const int64_t rows = rows_ - (leaves_out() ? background_rows_ : 0);
  theirs_ = {rows};
  if (shape.rank() == 1) return;
  bgr_ = layer.bgr;
  const bool filters = options.layout == Layout::krsc, torch = order == ArrayOrder::torch;
  channels_ = filters ? shape[3] : options.layout == Layout::flat ? options.channels : shape[1];
  positions_ = filters ? shape[1] * shape[2] : shape[1] / channels_;
  // In a transposed convolution our rows are its inputs, and the channels its outputs.
  if (filters)
    theirs_ = torch ? Shape{rows, channels_, shape[1], shape[2]} : Shape{shape[1], shape[2], channels_, rows};
  else
    theirs_ = torch ? Shape{rows, shape[1]} : Shape{shape[1], rows};
  row_step_ = torch ? positions_ * channels_ : 1;
  const int64_t unit = torch ? 1 : rows;
  const bool channels_last = filters && !torch;
  position_step_ = unit * (channels_last ? channels_ : 1);
  channel_step_ = unit * (channels_last ? 1 : positions_);
}

int64_t ArrayArrangement::their_row(int64_t row) const {
  if (classes_ == ClassOrder::background_first) return row;
  if (row >= background_rows_) return row - background_rows_;
  return leaves_out() ? -1 : row + rows_ - background_rows_;
}

}  // namespace dtrain::models
