// Recursive file listing, like image-folder readers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "dtrain/core/error.h"

namespace dtrain::data {

// Sorted relative paths of all files below the folder. Follows links to folders, like torchvision's ImageFolder; skips
// files of is_left_out() and lists of skipped images. Throws Error(Fault::data) for a folder that cannot be
// listed, for a link cycle, and for a folder reachable by more than 64 paths.
std::vector<std::filesystem::path> files_below(const std::string& folder);

// The same, but reports such folders to `problem` and skips them. Adds the number of files and folders of is_left_out()
// to `left_out`, unless null.
using FolderProblem = std::function<void(const std::string& folder, const Error& error)>;
std::vector<std::filesystem::path> files_below(const std::string& folder, const FolderProblem& problem,
                                               uint64_t* left_out = nullptr);

// Throws Error(Fault::config) if a folder between `root` and a file is a link: writes would go elsewhere.
void require_no_linked_folders(const std::string& root, const std::vector<std::filesystem::path>& files);

}  // namespace dtrain::data
