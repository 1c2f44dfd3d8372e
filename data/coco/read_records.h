// Goes through the lists of a JSON file of COCO's, one record at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/coco/record.h"
#include "data/coco/text_source.h"

namespace dtrain::data::coco {

// A list that is looked for: its key in the object that is the whole file, and what its records are called.
struct RecordList {
  std::string_view key, what;
  std::function<void(Record&)> take;
};

// Values NaN, Infinity and -Infinity, which Python writes, and the byte at which the first of them stands. They are
// read as null.
struct NonFinite {
  uint64_t count = 0, first = 0;
};

// Passes the records of each list to it, in the order of the text. A list without a key is the whole file, which has
// no other then. Throws Error(Fault::data) for what is not JSON, nested deeper than 64, or lacks a list.
NonFinite read_records(const TextSource& source, const std::vector<RecordList>& lists);

}  // namespace dtrain::data::coco
