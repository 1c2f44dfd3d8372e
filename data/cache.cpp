#include "dtrain/data/cache.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>

#include "dtrain/core/error.h"
#include "dtrain/io/file_system.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::data {

std::string cached_name(const std::string& path) {
  uint64_t hash = 0xcbf29ce484222325;
  const std::string place = is_remote(path) ? path : std::filesystem::absolute(path).lexically_normal().string();
  for (char c : place) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::filesystem::path(path).filename().string() + "-" + digits;
}

int64_t modified_at(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) < 0) throw Error(Fault::data, describe_errno("stat", path));
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace dtrain::data
