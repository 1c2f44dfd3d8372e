// A new folder that appears when it is complete.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtrain::dataset {

// Published atomically by commit(), else removed. Thread-safe.
class NewFolder {
 public:
  // Throws Error(Fault::config) if there is something else than an empty folder at `path`.
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Makes an empty folder.
  void make(const std::string& name) const;
  // Writes the file `name`, with the folders in its name.
  void write(const std::string& name, std::string_view bytes) const;
  // Makes a symbolic link with this name.
  void link(const std::string& name, const std::filesystem::path& target) const;
  void commit() const;

 private:
  std::string make_place(const std::string& name) const;

  std::string path_, part_;
};

}  // namespace dtrain::dataset
