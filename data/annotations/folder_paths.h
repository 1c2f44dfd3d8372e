// Paths inside the folder of a data set, by relative names with forward slashes.
#pragma once

#include <string>
#include <vector>

namespace dtrain::data::annotations {

class FolderPaths {
 public:
  explicit FolderPaths(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string absolute(const std::string& inner) const { return inner.empty() ? folder_ : folder_ + "/" + inner; }
  bool has_file(const std::string& inner) const;
  // Names of the files in the folder itself with one of these endings, sorted.
  std::vector<std::string> files_with(const std::vector<std::string>& endings) const;
  // Images in a folder and its subfolders, sorted; none if it does not exist. Throws Error(Fault::data) if one cannot
  // be listed.
  std::vector<std::string> images_below(const std::string& inner) const;

  // An existing file or folder that `stated` names: relative to `home`, then to the folder; of a path that is absolute
  // or leads out of the folder, the longest end that exists. Empty without one.
  std::string find(const std::string& stated, const std::string& home) const;
  // `stated` with forward slashes and without a root, a drive and leading "..".
  static std::string inside(const std::string& stated);

 private:
  bool exists(const std::string& inner) const;

  std::string folder_;
};

// Folder of a file; "." for a bare name.
std::string directory_of_path(const std::string& file);

}  // namespace dtrain::data::annotations
