#include "apps/observers/config_keeper.h"

#include <filesystem>

#include <fmt/format.h>

#include "apps/cli/config_file.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"

namespace dtrain::observers {
namespace {

bool exists(const std::string& path) {
  std::error_code failure;  // opening it reports the error
  return std::filesystem::exists(path, failure);
}

bool sets_the_same(const std::string& path, const std::string& text) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  try {
    return cli::same_settings(read_text(path, kMaxBytes), text);
  } catch (const Error&) {  // it is kept under another name
    return false;
  }
}

// An unused file name.
std::string name_aside(const std::string& folder, uint64_t step) {
  std::string path = fmt::format("{}/config-{}.toml", folder, step);
  for (int i = 2; exists(path); ++i) path = fmt::format("{}/config-{}-{}.toml", folder, step, i);
  return path;
}

}  // namespace

void ConfigKeeper::begun(const Begun& event) {
  const std::string path = folder_ + "/config.toml";
  try {
    if (exists(path)) {
      if (event.complete || sets_the_same(path, text_)) return;
      const std::string aside = name_aside(folder_, event.step);
      require_success(system_files().rename(path, aside), "rename", path);
    }
    AtomicFile file(path);
    file.write(text_);
    file.commit();
  } catch (const Error& error) {
    notice_(error.what());
  }
}

}  // namespace dtrain::observers
