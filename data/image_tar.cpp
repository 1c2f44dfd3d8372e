#include "data/image_tar.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "data/tar.h"
#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

// "c" of "a/b/c".
std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// "b" of "a/b/c", "" of "c" and "./c".
std::string folder_of(const std::string& name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return "";
  const std::string folder = last_part(name.substr(0, slash));
  return folder == "." ? "" : folder;
}

}  // namespace

std::vector<TreeImage> images_of_tar(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path);
  std::vector<TreeImage> images;
  const auto add = [&](const TarMember& member, const std::string& archive, const std::string& synset) {
    const std::string filename = last_part(member.name);
    if (filename.starts_with('.')) return;
    images.push_back({.path = concat(archive, ": ", filename, " at byte ", member.offset),
                      .filename = filename,
                      .synset = synset,
                      .archive = file,
                      .offset = member.offset,
                      .bytes = member.size});
  };
  for (const TarMember& member : tar_members(*file)) {
    if (!member.name.ends_with(".tar")) {
      add(member, path, folder_of(member.name));
      continue;
    }
    const std::string name = last_part(member.name), archive = concat(path, ": ", name);
    for (const TarMember& image : tar_members(*file, member.offset, member.size, archive))
      add(image, archive, name.substr(0, name.size() - 4));
  }
  if (images.empty()) throw Error(Fault::data, path + ": no images in the archive");
  std::ranges::sort(images, {}, [](const TreeImage& image) { return std::tie(image.synset, image.filename); });
  return images;
}

std::vector<std::string> classes_of(const std::vector<TreeImage>& images) {
  std::set<std::string> classes;
  for (const TreeImage& image : images) classes.insert(image.synset);
  return {classes.begin(), classes.end()};
}

}  // namespace dtrain::data
