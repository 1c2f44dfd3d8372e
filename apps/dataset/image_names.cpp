#include "apps/dataset/image_names.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "dtrain/data/image.h"

namespace dtrain::dataset {
namespace {

namespace coco = data::coco;

// Length of the folders that all names begin with.
size_t shared_folders(const std::vector<coco::AnnotatedImage>& images) {
  std::string shared = images.empty() ? "" : images.front().file_name;
  for (const coco::AnnotatedImage& image : images) {
    const auto [end, other] = std::ranges::mismatch(shared, image.file_name);
    shared.erase(end, shared.end());
  }
  const size_t slash = shared.rfind('/');
  return slash == shared.npos ? 0 : slash + 1;
}

std::string without_image_ending(const std::string& name) {
  return data::has_image_name(name) ? name.substr(0, name.rfind('.')) : name;
}

void number_repeated_names(std::vector<coco::AnnotatedImage>& images) {
  std::set<std::string> names, stems;  // taken by images before
  std::map<std::string, int> repetitions;
  for (coco::AnnotatedImage& image : images) {
    const std::string name = image.file_name, stem = without_image_ending(name), ending = name.substr(stem.size());
    const auto is_taken = [&](const std::string& one) {
      return names.contains(one + ending) || (ending.empty() && stems.contains(one));
    };
    std::string numbered = stem;
    for (int& number = repetitions[name]; is_taken(numbered);)
      numbered = fmt::format("{}_{}", stem, number = std::max(number + 1, 2));
    image.file_name = numbered + ending;
    names.insert(image.file_name);
    stems.insert(numbered);
  }
}

}  // namespace

void place_in_one_folder(std::vector<coco::AnnotatedImage>& images) {
  const size_t shared = shared_folders(images);
  for (coco::AnnotatedImage& image : images) {
    image.file_name.erase(0, shared);
    while (image.file_name.starts_with("../")) image.file_name.erase(0, 3);
  }
  number_repeated_names(images);
}

}  // namespace dtrain::dataset
