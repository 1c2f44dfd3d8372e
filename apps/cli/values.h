// Texts of flags to typed values.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/range.h"

namespace dtrain::cli {

// All throw Error saying what was expected and what was found.
bool parse_bool(const std::string& text);  // true, t, 1; false, f, 0
template <class T>                         // int64_t or double
T parse_number(const std::string& text, Range<T> range = kAny<T>);
// The one of `choices` that `text` is, in capitals or not.
std::string parse_choice(const std::string& text, const std::vector<std::string>& choices);
std::vector<std::string> split_list(const std::string& text);   // at commas; empty parts are dropped
std::vector<std::string> split_words(const std::string& text);  // at blanks
// A path of a file system: `~` at its beginning stands for the home folder, and `~NAME` for that of a user. Throws
// Error for ~NAME/ where there is no such user, and for the URL of an object store or a server, such as
// gs://bucket/run: programs read and write file systems alone. Other texts stay what they are.
std::string parse_path(const std::string& text);
// The same for the value of a flag of type string, and for each part of a list; values of other types stay.
std::string with_paths(const std::string& type, const std::string& text);
// The one spelling of a value, so that equal values compare equal: "true" for "1", "0" for "0.00". `type` is bool, int,
// float, string, list, or choices as in "fast|slow".
std::string normalised(const std::string& type, const std::string& text);

}  // namespace dtrain::cli
