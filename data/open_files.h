// Limit on files that stay open.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace dtrain::data {

// Leaves half of the file descriptor limit to the rest of the process.
inline bool can_keep_open(size_t files) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && files <= limit.rlim_cur / 2;
}

}  // namespace dtrain::data
