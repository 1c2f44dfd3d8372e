#include "data/annotations/image_folder.h"

#include <filesystem>

#include "data/image_tree.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/io/file_system.h"

namespace dtrain::data::annotations {

namespace fs = std::filesystem;

ImageFolder::ImageFolder(const std::string& root, const std::string& inner) try
    : root_(root), place_(inner.empty() ? "" : inner + "/") {
  std::error_code unknown;
  if (!fs::is_directory(fs::path(root) / inner, unknown)) return;
  for (const auto& entry : fs::directory_iterator(fs::path(root) / inner)) {
    const std::string name = entry.path().filename().string();
    if (is_left_out(name) || !has_image_name(name)) continue;
    // Of several files the first by name, so that the order of the folder does not matter.
    const auto [at, is_new] = stems_.emplace(entry.path().stem().string(), name);
    if (!is_new && name < at->second) at->second = name;
  }
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              concat(root, "/", inner, ": cannot be listed: ", error.code().message()));
}

std::string ImageFolder::with_stem(const std::string& stem) const {
  const auto found = stems_.find(stem);
  return found == stems_.end() ? "" : place_ + found->second;
}

std::string ImageFolder::with_name(const std::string& name) const {
  std::error_code unknown;
  const bool is_name = !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
  return is_name && fs::is_regular_file(fs::path(root_) / (place_ + name), unknown) ? place_ + name : "";
}

}  // namespace dtrain::data::annotations
