// Image files of a folder by stem.
#pragma once

#include <map>
#include <string>

namespace dtrain::data::annotations {

class ImageFolder {
 public:
  ImageFolder() = default;
  // Lists `inner`, relative to `root`; empty if it does not exist. Throws Error(Fault::data) if it cannot be listed.
  ImageFolder(const std::string& root, const std::string& inner);

  // Path relative to the root of the image with this name without extension; empty without one.
  std::string with_stem(const std::string& stem) const;
  // The same by the whole name.
  std::string with_name(const std::string& name) const;
  bool empty() const { return stems_.empty(); }

 private:
  std::string root_{};
  std::string place_{};                         // prefix of names
  std::map<std::string, std::string> stems_{};  // file names
};

}  // namespace dtrain::data::annotations
