#include "data/annotations/folder_paths.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "data/annotations/labelled_image.h"
#include "data/image_tree.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/io/file_system.h"

namespace dtrain::data::annotations {
namespace {

namespace fs = std::filesystem;

// With forward slashes and without a drive.
std::string with_slashes(std::string path) {
  std::ranges::replace(path, '\\', '/');
  if (path.size() > 2 && std::isalpha(path[0] & 0x7f) && path[1] == ':' && path[2] == '/') path.erase(0, 2);
  return path;
}

}  // namespace

bool FolderPaths::has_file(const std::string& inner) const {
  std::error_code unknown;
  return fs::is_regular_file(absolute(inner), unknown);
}

bool FolderPaths::exists(const std::string& inner) const {
  std::error_code unknown;
  return stays_inside(inner) && fs::exists(absolute(inner), unknown);
}

std::vector<std::string> FolderPaths::files_with(const std::vector<std::string>& endings) const {
  std::vector<std::string> names;
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(folder_, unknown)) {
    const std::string name = entry.path().filename().string();
    if (!is_left_out(name) && std::ranges::find(endings, entry.path().extension().string()) != endings.end())
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> FolderPaths::images_below(const std::string& inner) const try {
  std::vector<std::string> images;
  std::error_code unknown;
  if (!fs::is_directory(absolute(inner), unknown)) return images;
  const fs::path root(absolute(inner));
  for (fs::recursive_directory_iterator at(root), end; at != end; ++at) {
    const std::string name = at->path().filename().string();
    if (is_left_out(name)) {
      at.disable_recursion_pending();
    } else if (!at->is_directory() && has_image_name(name)) {
      const std::string path = at->path().lexically_relative(root).string();
      images.push_back(inner.empty() ? path : inner + "/" + path);
    }
  }
  std::ranges::sort(images);
  return images;
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              concat(absolute(inner), ": cannot be listed: ", error.code().message()));
}

std::string FolderPaths::inside(const std::string& stated) {
  std::string path = normal_path(with_slashes(stated));
  path.erase(0, std::min(path.find_first_not_of('/'), path.size()));
  while (path == ".." || path.starts_with("../")) path.erase(0, 3);
  return path;
}

std::string FolderPaths::find(const std::string& stated, const std::string& home) const {
  const std::string path = with_slashes(stated), joined = normal_path(with_slashes(home) + "/" + path);
  if (!path.starts_with('/') && !home.empty() && exists(joined)) return joined;
  std::string end = inside(path);
  if (exists(end)) return end;
  if (!path.starts_with('/') && !with_slashes(home).starts_with('/')) return "";
  if (!path.starts_with('/')) end = inside(with_slashes(home) + "/" + path);
  for (size_t slash = 0; (slash = end.find('/')) != end.npos;) {
    end.erase(0, slash + 1);
    if (exists(end)) return end;
  }
  return "";
}

std::string directory_of_path(const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace dtrain::data::annotations
