// --train_dir in object storage.
#include <chrono>
#include <future>

#include "apps/cli/agreed_stop.h"
#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/checkpoints.h"
#include "apps/cli/stop_signals.h"
#include "libdtrain/train/remote_train_dir.h"

namespace dtrain::cli {
namespace {

// The other ranks wait for as long as the chief is alive. Collective.
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

}  // namespace

bool CheckpointFlags::open_remote(Group& group) {
  if (!is_remote()) return true;
  const int chief = ranks_of(group).chief;
  const std::string cache = cache_directory();
  DT_CHECK(!cache.empty(), "--train_dir=", train_dir,
           ": needs a cache folder for its working folder; set XDG_CACHE_HOME or HOME");
  const RemoteTrainDirOptions options{.url = train_dir,
                                      .folder = cache + "/train_dirs/" + working_folder_name(train_dir),
                                      .host = group.places()[static_cast<size_t>(chief)].host,
                                      .lease_seconds = lease_timeout,
                                      .clear = clear_train_dir,
                                      .note = [](const std::string& text) { print_message("note", text); },
                                      .stop = stop_requested};
  train_dir = options.folder;
  uploads = true;
  return open_unless_stopped(group, [&] {
    do_on_chief(
        group, chief, [&] { remote = std::make_shared<RemoteTrainDir>(options); }, "opening of train_dir");
  });
}

void CheckpointFlags::close_remote(Group& group) const {
  if (!uploads) return;
  do_on_chief(
      group, ranks_of(group).chief,
      [this] {
        if (remote) remote->finish();
      },
      "uploads of train_dir");
}

}  // namespace dtrain::cli
