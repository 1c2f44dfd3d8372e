// What programs take from their environment.
#pragma once

#include <string>

namespace dtrain::cli {

// Where indices and unpacked copies of read-only data are kept: $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain; empty
// where neither is known.
std::string cache_directory();

}  // namespace dtrain::cli
