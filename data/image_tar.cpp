#include "data/image_tar.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "data/tar.h"
#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

// Components of "./a/b/c": a, b and c.
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

struct Place {
  std::string synset, split;
};

// Location of split folders in an archive: the parent of the first folder train that contains classes (folders or
// archives). Without one, all folders may be classes, even one named train.
class SplitFolders {
 public:
  explicit SplitFolders(const std::vector<TarMember>& members) {
    for (const TarMember& member : members) {
      const std::vector<std::string> parts = parts_of(member.name);
      const size_t inner = member.name.ends_with(".tar") ? 2 : 3;  // components from the split on
      if (parts.size() < inner || lies_left_out(member.name)) continue;
      const size_t depth = parts.size() - inner;
      if (split_of_folder(parts[depth]) != "train" || (found_ && around_.size() <= depth)) continue;
      around_.assign(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(depth));
      found_ = true;
    }
  }

  // Class of a member, "" if none, and its split; outside of the splits the split is the folder's path.
  Place place_of(const std::string& name) const {
    const std::vector<std::string> parts = parts_of(name);
    if (parts.empty()) return {};
    const size_t folders = parts.size() - 1, depth = around_.size();
    const std::string last = folders > 0 ? parts[folders - 1] : "";
    if (!found_) return {last, ""};
    const bool is_inside = folders > depth && std::equal(around_.begin(), around_.end(), parts.begin());
    const std::string split = is_inside ? split_of_folder(parts[depth]) : "";
    if (!split.empty()) return {folders > depth + 1 ? last : "", split};
    std::string outside;
    for (size_t i = 0; i < std::min(folders, depth + 1); ++i) outside += concat(i > 0 ? "/" : "", parts[i]);
    return {last, outside.empty() ? "top-level" : outside};
  }

 private:
  bool found_ = false;
  std::vector<std::string> around_;  // parents of the split folders
};

}  // namespace

std::vector<TreeImage> images_of_tar(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path);
  const std::vector<TarMember> members = tar_members(*file);
  const SplitFolders splits(members);
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
    const Place place = splits.place_of(member.name);
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
