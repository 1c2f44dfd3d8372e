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

std::optional<int64_t> class_of(const std::string& text) {
  int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc{} && end == text.data() + text.size() && number >= 0 ? std::optional(number) : std::nullopt;
}

bool is_image(const fs::path& path) {
  const std::string type = path.extension();
  return type == ".jpg" || type == ".jpeg" || type == ".png" || type == ".JPEG";
}

std::vector<LabelledImage> in_folders_of_classes(const std::string& folder) {
  std::vector<LabelledImage> images;
  for (const auto& of_class : fs::directory_iterator(folder)) {
    const auto label = class_of(of_class.path().filename());
    if (!label || !of_class.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(of_class))
      if (file.is_regular_file() && is_image(file.path()))
        images.push_back({.path = file.path(), .name = fs::relative(file.path(), folder), .label = label});
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
                    ": found no images; expected CLASS/NAME.jpg in it, with the numbers of the classes, or "
                    "--annotations");
  return images;
}

}  // namespace dtrain::serve
