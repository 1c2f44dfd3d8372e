// Parses flag values from text.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/range.h"

namespace dtrain::cli {

// All throw Error with the expected and the found value.
bool parse_bool(const std::string& text);  // true, t, 1; false, f, 0
template <class T>                         // int64_t or double
T parse_number(const std::string& text, Range<T> range = kAny<T>);
// The element of `choices` that equals `text`, ignoring case.
std::string parse_choice(const std::string& text, const std::vector<std::string>& choices);
std::vector<std::string> split_list(const std::string& text);   // split at commas; empty parts are dropped
std::vector<std::string> split_words(const std::string& text);  // at blanks
// Expands a leading `~` or `~NAME` of a path to the home folder. Throws Error for ~NAME/ of an unknown user, and for
// URLs such as gs://bucket/run, which are not supported, unless they are s3:// or https:// and `may_be_remote`. Other
// texts are unchanged.
std::string parse_path(const std::string& text, bool may_be_remote = false);
// The same for string values and each element of a list; values of other types are unchanged.
std::string with_paths(const std::string& type, const std::string& text, bool may_be_remote = false);
// Canonical spelling of a value, so that equal values compare equal: "true" for "1", "0" for "0.00". `type` is bool,
// int, float, string, list, or choices as in "fast|slow".
std::string normalised(const std::string& type, const std::string& text);

}  // namespace dtrain::cli
