// Streaming reader of the lists in a COCO JSON file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/coco/record.h"
#include "data/coco/text_source.h"

namespace dtrain::data::coco {

// List to read: its key in the top-level object, and the name of its records in errors.
struct RecordList {
  std::string_view key, what;
  std::function<void(Record&)> take;
};

// Count of NaN, Infinity and -Infinity, which Python writes and which are read as null, and the byte offset of the
// first one.
struct NonFinite {
  uint64_t count = 0, first = 0;
};

// Passes each record to its list's `take`, in file order. A list with an empty key is the whole file, and then the only
// list. Throws Error(Fault::data) for invalid JSON, nesting deeper than 64, and a missing list.
NonFinite read_records(const TextSource& source, const std::vector<RecordList>& lists);

}  // namespace dtrain::data::coco
