// Names files that are not what their name says: what a failed download or a repository without its large files leaves.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::data {

// What the file is that begins with `head`, of which some hundred bytes are enough, and what to do: "an HTML page, as a
// failed download leaves it; download the file again". "" for what has no known beginning.
std::string foreign_kind(std::string_view head);

}  // namespace dtrain::data
