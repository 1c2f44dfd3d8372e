// Index of the image files below the class folders of a split, cached between runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/cache.h"

namespace dtrain::data {

enum class FileContent : uint32_t { image, other };

struct IndexedFile {
  std::string name{};  // path below the split's folder: CLASS/.../FILE
  uint64_t bytes = 0;
  int64_t modified = 0;  // as modified_at()
  uint32_t crc = 0;      // CRC-32C of an image's bytes; 0 for other content
  FileContent content = FileContent::image;
  bool operator==(const IndexedFile&) const = default;
};

// Body of an index file: header, an entry per file, names.
std::string image_index_body(const std::vector<IndexedFile>& files);
// Parses it; nothing for any other text.
std::optional<std::vector<IndexedFile>> image_index_from(std::string_view body);

// Path of a file that is named relative to `root`, or absolutely.
std::string path_below(const std::string& root, const std::string& name);

struct IndexFault {
  std::string name{};    // of the file; empty for a folder
  std::string reason{};  // with the path
};

struct ImageIndex {
  std::vector<IndexedFile> files{};
  // Unreadable files and folders, files with an image's name and other content, and images above kMaxRecordBytes.
  std::vector<IndexFault> faults{};
  uint64_t left_out = 0;  // files and folders of is_left_out()
};

// Indexes the files below `root`/CLASS for each of `classes`, in the order of torchvision's ImageFolder: by class,
// folder and file name, each compared by bytes. Follows links, as ImageFolder does. An image is recognised by its
// content. Files whose size and modification time are in a cached index are not read; all others are read in parallel,
// and the index is stored again (data/index_file.h). Processes that share `cache.directory` take turns, so that each
// file is read once. Reports progress in files that are read.
ImageIndex index_images(const std::string& root, const std::vector<std::string>& classes, const CacheOptions& cache);

// The same for different files, which are named as in path_below() and stay in this order. The index is stored as that
// of the file or folder `place`.
ImageIndex index_listed(const std::string& root, const std::vector<std::string>& names, const std::string& place,
                        const CacheOptions& cache);

}  // namespace dtrain::data
