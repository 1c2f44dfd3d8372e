// Batch layout: named fields with shape and type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dtrain/core/types.h"

namespace dtrain::data {

struct Field {
  std::string name{};
  Shape shape{};  // per row
  DType dtype = DType::f32;
  int32_t padding = 0;  // value of padding rows, and after the last entry of a ragged field
  // For a ragged field: name of the i32 field of shape [] with the number of entries in a row, up to shape[0]. Fields
  // with the same count have equally many entries. Empty: not ragged.
  std::string count{};
  bool operator==(const Field&) const = default;
};

// Examples: images with labels; images with boxes and masks that share a count.
struct BatchLayout {
  // Name of the layout in runs with several: "landscape".
  std::string variant{};
  std::vector<Field> fields{};

  // Index of the field with this name. Throws Error listing the known names.
  size_t index(std::string_view name) const;
  // Throws Error for a field without a unique name, without elements, of a type that hosts do not support, or with an
  // invalid count.
  void check() const;
  bool operator==(const BatchLayout&) const = default;
};

}  // namespace dtrain::data
