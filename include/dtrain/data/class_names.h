// Class names in a file beside the shards, with a line "LABEL NAME" per class. Labels are as stored in the records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data {

inline constexpr const char* kClassNamesFile = "classes.txt";

using ClassNames = std::map<int64_t, std::string>;

// Serialises `names`, which contain no line breaks.
std::string to_text(const ClassNames& names);
// Parses this text. Throws Error(Fault::data), "WHERE: line N: ...", for a line without label or name, a duplicate
// label, and a label above 2^20.
ClassNames class_names_from(std::string_view text, const std::string& where);
// Reads the names of the data set in `directory`; empty without such a file.
ClassNames read_class_names(const std::string& directory);

// Names by output index of a classifier trained on label + label_offset: `classes` names, empty for unnamed classes.
// Empty vector if `names` is empty.
std::vector<std::string> names_by_output(const ClassNames& names, int64_t classes, int64_t label_offset);

}  // namespace dtrain::data
