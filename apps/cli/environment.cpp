// Environment variables.
#include "apps/cli/environment.h"

#include <cstdlib>

namespace dtrain::cli {

std::string cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/dtrain";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/dtrain" : "";
}

}  // namespace dtrain::cli
