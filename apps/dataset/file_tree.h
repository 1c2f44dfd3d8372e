// The files of a folder, as programs for image folders see them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "libdtrain/core/error.h"

namespace dtrain::dataset {

// All files below the folder, sorted, by their paths in it. Folders that are links are followed, as torchvision's
// ImageFolder does; what data::is_left_out() names is left out, and so is a list of skipped images. Throws
// Error(Fault::data) for a folder that cannot be listed, for a link that leads back to a folder around it, and for a
// folder to which more than 64 paths lead by links.
std::vector<std::filesystem::path> files_below(const std::string& folder);

// The same, but `problem` is told of such folders, which are left out.
using FolderProblem = std::function<void(const std::string& folder, const Error& error)>;
std::vector<std::filesystem::path> files_below(const std::string& folder, const FolderProblem& problem);

// Throws Error(Fault::config) where a folder on the way from `root` to one of the files is a link: what is written
// there would land elsewhere.
void require_no_linked_folders(const std::string& root, const std::vector<std::filesystem::path>& files);

}  // namespace dtrain::dataset
