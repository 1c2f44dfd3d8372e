#include "data/image_tar.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "data/tar.h"
#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

// The parts of "./a/b/c": a, b and c.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (const std::string part = name.substr(begin, end - begin); !part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

bool lies_left_out(const std::string& name) { return std::ranges::any_of(parts_of(name), is_left_out); }

// Whether a class, a folder or an archive, lies in a folder train: then such folders are splits, and else may be
// classes.
bool holds_splits(const std::vector<TarMember>& members) {
  return std::ranges::any_of(members, [](const TarMember& member) {
    const std::vector<std::string> parts = parts_of(member.name);
    const size_t inner = member.name.ends_with(".tar") ? 2 : 3;  // parts from the split on
    return parts.size() >= inner && parts[parts.size() - inner] == "train";
  });
}

struct Place {
  std::string synset, split;
};

Place place_of(const std::string& name, bool has_splits) {
  const std::vector<std::string> parts = parts_of(name);
  const auto part = [&](size_t from_end) { return parts.size() > from_end ? parts[parts.size() - 1 - from_end] : ""; };
  if (!has_splits) return {part(1), ""};
  if (const std::string split = split_of_folder(part(1)); !split.empty()) return {"", split};
  return {part(1), split_of_folder(part(2))};
}

}  // namespace

std::vector<TreeImage> images_of_tar(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path);
  const std::vector<TarMember> members = tar_members(*file);
  const bool has_splits = holds_splits(members);
  std::vector<TreeImage> images;
  const auto add = [&](const TarMember& member, const std::string& archive, Place place) {
    images.push_back({.path = concat(archive, ": ", last_part(member.name), " at byte ", member.offset),
                      .filename = last_part(member.name),
                      .synset = std::move(place.synset),
                      .split = std::move(place.split),
                      .archive = file,
                      .offset = member.offset,
                      .bytes = member.size});
  };
  for (const TarMember& member : members) {
    if (lies_left_out(member.name)) continue;
    const Place place = place_of(member.name, has_splits);
    if (!member.name.ends_with(".tar")) {
      add(member, path, place);
      continue;
    }
    const std::string name = last_part(member.name), archive = concat(path, ": ", name);
    for (const TarMember& image : tar_members(*file, member.offset, member.size, archive))
      if (!lies_left_out(image.name)) add(image, archive, {name.substr(0, name.size() - 4), place.split});
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
