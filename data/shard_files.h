// Which files are the shards of a split, and whether all of them are there.
#pragma once

#include <string>
#include <vector>

namespace dtrain::data {

// The files SPLIT-00000-of-N to SPLIT-<N-1>-of-N of `folder`, or from 1 to N as some writers number them, in order and
// whatever suffix they have. None where it holds no file of such a name. Throws Error(Fault::data) where it cannot be
// listed, some are missing (naming them), one is there twice, or two families of shards are mixed.
std::vector<std::string> shards_in(const std::string& folder, const std::string& split);

// The folders in which the shards of a split may lie: the data set's own and, where they exist, the folder SPLIT in it,
// or val for "validation".
std::vector<std::string> shard_folders(const std::string& directory, const std::string& split);

// Whether any of them holds a file of such a name.
bool has_shards(const std::string& directory, const std::string& split);

// The shards of the one of these folders that holds any. Throws Error(Fault::data) as shards_in does, and where no
// folder or more than one of them holds any, or new ones are being put in place.
std::vector<std::string> find_shards(const std::string& directory, const std::string& split);

}  // namespace dtrain::data
