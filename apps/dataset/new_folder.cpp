#include "apps/dataset/new_folder.h"

#include "dtrain/core/error.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/file_system.h"

namespace dtrain::dataset {

namespace fs = std::filesystem;

NewFolder::NewFolder(const std::string& path) : path_(fs::absolute(path).lexically_normal().string()) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  std::error_code absent;
  if (fs::exists(path_, absent) && !(fs::is_directory(path_, absent) && fs::is_empty(path_, absent)))
    throw Error(Fault::config, path + ": is there already; choose another name or remove it");
  make_directories(system_files(), directory_of(path_));
  part_ = temporary_name(path_);
}

NewFolder::~NewFolder() {
  std::error_code left;
  fs::remove_all(part_, left);
}

std::string NewFolder::make_place(const std::string& name) const {
  std::string path = part_ + "/" + name;
  make_directories(system_files(), directory_of(path));
  return path;
}

void NewFolder::make(const std::string& name) const { make_directories(system_files(), part_ + "/" + name); }

void NewFolder::write(const std::string& name, std::string_view bytes) const {
  OutputFile file(system_files(), make_place(name));
  file.write(bytes);
  file.close();
}

void NewFolder::link(const std::string& name, const fs::path& target) const {
  const std::string path = make_place(name);
  std::error_code failure;
  fs::create_symlink(target, path, failure);
  if (failure)
    throw Error(fault_of_errno(failure.value(), Fault::resource),
                concat(path, ": cannot be made: ", failure.message()));
}

void NewFolder::commit() const { commit_directory(system_files(), part_, path_); }

}  // namespace dtrain::dataset
