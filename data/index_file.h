// Files that cache an index of a file or folder between runs: a body and its CRC-32C.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::data {

// Places of the index of `path`, in order of preference: beside it (.NAME.dtidx), and in `cache_directory`, unless
// empty.
std::vector<std::string> index_places(const std::string& path, const std::string& cache_directory);
// Reads the body of an index file; nothing if it is missing, damaged or larger than `limit` bytes.
std::optional<std::string> load_index(const std::string& place, size_t limit);
// Writes an index file at the first writable place. An index is only a cache: without a writable place nothing is
// written. Safe for concurrent processes.
void save_index(const std::string& path, const std::string& cache_directory, std::string body);

}  // namespace dtrain::data
