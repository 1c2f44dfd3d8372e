// Goes through the lists of a JSON file of COCO's, one record at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/coco/record.h"

namespace dtrain::data::coco {

// A list that is looked for: its key in the object that is the whole file, and what its records are called.
struct RecordList {
  std::string_view key, what;
  std::function<void(Record&)> take;
};

// A file in pieces, or text in memory. next() gives what follows and is empty at the end.
struct TextSource {
  std::string where;  // in errors
  std::function<std::string_view()> next;
};
TextSource file_source(const std::string& path);
TextSource text_source(std::string_view text, const std::string& where);

// Passes the records of each list to it, in the order of the text. A list without a key is the whole file, which has
// no other then. Throws Error(Fault::data) for what is not JSON, nested deeper than 64, or lacks a list.
void read_records(const TextSource& source, const std::vector<RecordList>& lists);

}  // namespace dtrain::data::coco
