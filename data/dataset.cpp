#include "dtrain/data/dataset.h"

#include "dtrain/core/error.h"

namespace dtrain::data {

std::string RecordLocation::text() const {
  return name.empty() ? concat(file, ": record ", record, " at byte ", offset) : concat(file, ": ", name);
}

}  // namespace dtrain::data
