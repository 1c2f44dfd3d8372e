#include "apps/serve/labelled_images.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "data/coco/annotations.h"
#include "data/coco_images.h"
#include "libdtrain/core/error.h"

namespace dtrain::serve {
namespace {

namespace fs = std::filesystem;

std::vector<LabelledImage> annotated(const std::string& folder, const std::string& file) {
  const data::coco::Annotations all = data::coco::read_annotations(file, {.complete = data::complete_from(folder)});
  std::vector<LabelledImage> images;
  for (size_t i = 0; i < all.images.size(); ++i) {
    const std::string& name = all.images[i].file_name;
    LabelledImage image{.path = folder + "/" + name, .name = name};
    for (const data::coco::Annotation& one : all.of(i))
      if (!one.is_crowd) image.objects.push_back({one.box, all.categories[one.category].id});
    images.push_back(std::move(image));
  }
  return images;
}

std::optional<int64_t> number_in(const std::string& text) {
  int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc{} && end == text.data() + text.size() && number >= 0 ? std::optional(number) : std::nullopt;
}

bool is_image(const fs::path& path) {
  const std::string type = path.extension();
  return type == ".jpg" || type == ".jpeg" || type == ".png" || type == ".JPEG";
}

// In the order in which dtrain-data numbers them.
std::vector<fs::path> class_folders(const std::string& folder) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !entry.path().filename().string().starts_with('.')) folders.push_back(entry.path());
  std::ranges::sort(folders);
  return folders;
}

std::vector<LabelledImage> in_folders_of_classes(const std::string& folder) {
  std::vector<LabelledImage> images;
  int64_t place = 0;
  for (const fs::path& of_class : class_folders(folder)) {
    ++place;
    for (const auto& file : fs::directory_iterator(of_class))
      if (file.is_regular_file() && is_image(file.path()))
        images.push_back({.path = file.path(),
                          .name = fs::relative(file.path(), folder),
                          .class_name = of_class.filename(),
                          .place = place});
  }
  std::ranges::sort(images, {}, &LabelledImage::name);
  return images;
}

}  // namespace

std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations) {
  if (!fs::is_directory(folder)) throw Error(Fault::data, "--images=" + folder + ": there is no such folder");
  auto images = annotations.empty() ? in_folders_of_classes(folder) : annotated(folder, annotations);
  if (images.empty())
    throw Error(Fault::data,
                "--images=" + folder +
                    ": found no images; expected CLASS/NAME.jpg in it, with the names or the numbers of the classes, "
                    "or --annotations");
  return images;
}

LabelRule::LabelRule(std::span<const std::string> names) : names_(names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty()) by_name_.emplace(names[i], static_cast<int64_t>(i));
}

std::optional<int64_t> LabelRule::label_of(const LabelledImage& image) const {
  if (const auto found = by_name_.find(image.class_name); found != by_name_.end()) return found->second;
  if (const auto number = number_in(image.class_name)) return number;
  return names_.empty() ? std::optional(image.place) : std::nullopt;
}

void LabelRule::require_labels(const std::vector<LabelledImage>& images) const {
  for (const LabelledImage& image : images)
    if (!image.class_name.empty() && !label_of(image))
      throw Error(Fault::data, concat("--images: ", image.path, ": ", image.class_name,
                                      " is none of the model's classes, such as ", by_name_.begin()->first));
}

bool LabelRule::counts_folders(const std::vector<LabelledImage>& images) const {
  return names_.empty() && std::ranges::any_of(images, [](const LabelledImage& image) {
           return !image.class_name.empty() && !number_in(image.class_name);
         });
}

}  // namespace dtrain::serve
