// --train_dir in object storage.
#include <memory>

#include "apps/cli/agreed_stop.h"
#include "apps/cli/chief_work.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/checkpoints.h"
#include "apps/cli/stop_signals.h"
#include "libdtrain/train/remote_train_dir.h"

namespace dtrain::cli {

bool CheckpointFlags::open_remote(Group& group) {
  if (!is_remote()) return true;
  const int chief = ranks_of(group).chief;
  const RemoteTrainDirOptions options{
      .url = train_dir,
      .folder = folder_for(train_dir, "train_dirs") + "/" + working_folder_name(train_dir),
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
