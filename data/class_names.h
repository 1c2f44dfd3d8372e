// The names of a data set's classes, in a file beside its shards: a line "LABEL NAME" for each class, by the labels
// that the records have.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data {

inline constexpr const char* kClassNamesFile = "classes.txt";

using ClassNames = std::map<int64_t, std::string>;

// `names` are of one line each.
std::string to_text(const ClassNames& names);
// Back from such a text. Throws Error(Fault::data), which begins with
// `where` and names the line, for a line that has no label or no name, and for a label that is there twice or larger
// than 2^20.
ClassNames class_names_from(std::string_view text, const std::string& where);
// Those of the data set in `directory`; none where there is no such file.
ClassNames read_class_names(const std::string& directory);

// The names by output of a classifier that is given label + label_offset: `classes` of them, empty where a class has no
// name. None at all where there are no names.
std::vector<std::string> names_by_output(const ClassNames& names, int64_t classes, int64_t label_offset);

}  // namespace dtrain::data
