// Discovery of a split's shard files.
#pragma once

#include <string>
#include <vector>

namespace dtrain::data {

// Files SPLIT-00000-of-N to SPLIT-<N-1>-of-N of `folder`, or numbered 1 to N, in order and with any suffix. Empty if
// there is none. Throws Error(Fault::data) if the folder is unreadable, shards are missing (with their names) or
// duplicate, or shards of two data sets are mixed.
std::vector<std::string> shards_in(const std::string& folder, const std::string& split);

// Folders that may hold the shards of a split: the data set's folder and, if they exist, its subfolders SPLIT, or val
// for "validation".
std::vector<std::string> shard_folders(const std::string& directory, const std::string& split);

// Whether any of these folders holds such a file.
bool has_shards(const std::string& directory, const std::string& split);

// Shards from the only one of these folders that has any. Throws Error(Fault::data) as shards_in does, if no folder or
// several folders have shards, and while new shards are being moved into place.
std::vector<std::string> find_shards(const std::string& directory, const std::string& split);

}  // namespace dtrain::data
