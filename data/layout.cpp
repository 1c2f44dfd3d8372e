#include "dtrain/data/layout.h"

#include <algorithm>

namespace dtrain::data {
namespace {

void check_count(const BatchLayout& layout, const Field& field) {
  DT_CHECK(field.shape.rank() > 0, "batch layout: field '", field.name, "' is one element, it cannot be ragged");
  const auto count = std::ranges::find(layout.fields, field.count, &Field::name);
  DT_CHECK(count != layout.fields.end(), "batch layout: no field '", field.count, "', the count of '", field.name, "'");
  DT_CHECK(count->shape.rank() == 0 && count->dtype == DType::i32, "batch layout: field '", field.count,
           "' counts the entries of '", field.name, "': expected i32 [], found ", count->dtype, " ", count->shape);
}

}  // namespace

size_t BatchLayout::index(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &Field::name);
  if (found != fields.end()) return static_cast<size_t>(found - fields.begin());
  std::string known;
  for (const Field& field : fields) known += (known.empty() ? "" : ", ") + field.name;
  throw Error(concat("a batch has no field '", name, "': it has ", known.empty() ? "none" : known));
}

void BatchLayout::check() const {
  DT_CHECK(!fields.empty(), "batch layout: no fields");
  for (const Field& field : fields) {
    DT_CHECK(!field.name.empty(), "batch layout: a field without a name");
    DT_CHECK(std::ranges::count(fields, field.name, &Field::name) == 1, "batch layout: two fields are named '",
             field.name, "'");
    DT_CHECK(field.shape.count() > 0, "batch layout: field '", field.name, "' is ", field.shape,
             ": each extent must be positive");
    DT_CHECK(field.dtype != DType::f16 && field.dtype != DType::bf16, "batch layout: field '", field.name, "' is ",
             field.dtype, ": expected f32, i32, i64 or u8");
    if (!field.count.empty()) check_count(*this, field);
  }
}

}  // namespace dtrain::data
