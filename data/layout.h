// What the rows of a batch hold: named fields, each of one shape and type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libdtrain/core/types.h"

namespace dtrain::data {

struct Field {
  std::string name{};
  Shape shape{};  // one row's
  DType dtype = DType::f32;
  int32_t padding = 0;  // what the elements are where a row holds no sample, and after the last entry of a ragged one
  // Names the i32 field of shape [] that says how many entries a row of this field has, where it is ragged: up to
  // shape[0]. Fields with the same count have equally many. Empty: all entries are there.
  std::string count{};
  bool operator==(const Field&) const = default;
};

// Images with labels are one layout; images with boxes and masks, which both follow the number of boxes, another.
struct BatchLayout {
  // Which one of the layouts of a run this is, where its batches differ in shape: "landscape".
  std::string variant{};
  std::vector<Field> fields{};

  // The number of the field of that name. Throws Error naming those that there are.
  size_t index(std::string_view name) const;
  // Throws Error where a field has no name or that of another one, has no elements, is of a type that hosts do not
  // compute with, or names a count that is none.
  void check() const;
  bool operator==(const BatchLayout&) const = default;
};

}  // namespace dtrain::data
