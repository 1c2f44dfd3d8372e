#include "apps/cli/chief_work.h"

#include <chrono>
#include <future>

#include "apps/cli/environment.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {

void do_on_chief(Group& group, int chief, const std::function<void()>& work, const char* what) {
  std::future<void> done;
  if (group.rank() == chief) done = std::async(std::launch::async, work);
  const auto is_busy = [&] {
    return done.valid() && done.wait_for(std::chrono::seconds(group.size() > 1 ? 1 : 600)) != std::future_status::ready;
  };
  while (group.extremes(is_busy() ? 1 : 0, what).second > 0) {
  }
  if (done.valid()) done.get();
}

std::string folder_for(const std::string& url, const char* name) {
  const std::string cache = cache_directory();
  DT_CHECK(!cache.empty(), "--train_dir=", url,
           ": needs a cache folder for its local files; set XDG_CACHE_HOME or HOME");
  return cache + "/" + name;
}

}  // namespace dtrain::cli
