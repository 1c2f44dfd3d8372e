// Environment variables.
#include "apps/cli/environment.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <sys/auxv.h>
#include <unistd.h>

namespace dtrain::cli {

Environment environment() {
  return [](const char* name) { return std::getenv(name); };
}

CudaOptions with_environment(CudaOptions options) {
  const auto says = [](const char* name, std::string_view value) {
    const char* text = std::getenv(name);
    return text != nullptr && text == value;
  };
  if (says("DTRAIN_SYNC", "1")) options.sync_each_launch = true;
  if (says("DTRAIN_POOL", "0")) options.pool = false;
  return options;
}

std::string cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/dtrain";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/dtrain" : "";
}

std::string own_path() {
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (path == nullptr) return "";
  // Another program may be there by now, or the system may run this one by means of another, such as an emulator or the
  // dynamic linker, which would not be started again in the same way. Without /proc nobody knows.
  const std::filesystem::path self = "/proc/self/exe";
  std::error_code ignored;
  if (std::filesystem::exists(self, ignored) && !std::filesystem::equivalent(path, self, ignored)) return "";
  return path;
}

void let_waiting_threads_sleep(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  const std::string path = own_path();
  if (!path.empty() && setenv("OMP_WAIT_POLICY", "passive", 0) == 0) execv(path.c_str(), argv);
  // Where that fails, the program runs on as it is: slower perhaps, not wrong.
}

}  // namespace dtrain::cli
