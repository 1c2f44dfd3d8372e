// Work of the chief alone, such as transfers from and to object storage, for which all ranks wait.
#pragma once

#include <functional>
#include <string>

#include "dtrain/distributed/group.h"

namespace dtrain::cli {

// Runs `work` on the chief, and throws what it throws there. The other ranks wait for as long as the chief is alive.
// `what`: for messages. Collective.
void do_on_chief(Group& group, int chief, const std::function<void()>& work, const char* what);

// Folder `name` in the cache folder, for local files of the train_dir `url`. Throws Error(Fault::config) without a
// cache folder.
std::string folder_for(const std::string& url, const char* name);

}  // namespace dtrain::cli
