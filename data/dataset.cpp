#include "data/dataset.h"

#include "libdtrain/core/error.h"

namespace dtrain::data {

std::string RecordLocation::text() const {
  return name.empty() ? concat(file, ": record ", record, " at byte ", offset) : concat(file, ": ", name);
}

}  // namespace dtrain::data
