#include "apps/serve/labelled_images.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "apps/cli/messages.h"
#include "apps/cli/stop_signals.h"
#include "data/coco_images.h"
#include "data/image_tree.h"
#include "dtrain/core/error.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/image.h"
#include "dtrain/io/input_file.h"

namespace dtrain::serve {
namespace {

namespace fs = std::filesystem;

std::vector<LabelledImage> annotated(const std::string& folder, const std::string& file) {
  const data::coco::Annotations all =
      data::coco::read_annotations(file, {.complete = data::complete_from(folder), .stop = cli::stop_requested});
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

std::vector<LabelledImage> in_folders_of_classes(const std::string& folder) {
  std::vector<LabelledImage> images;
  int64_t place = 0;
  for (const std::string& of_class : data::class_folders(folder)) {
    ++place;
    for (const auto& file : fs::directory_iterator(fs::path(folder) / of_class))
      if (file.is_regular_file() && data::has_image_name(file.path()))
        images.push_back({.path = file.path(),
                          .name = of_class + "/" + file.path().filename().string(),
                          .class_name = of_class,
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

std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations,
                                                const Session* session) {
  auto images = read_labelled_images(folder, annotations);
  if (session == nullptr || session->detects()) return images;
  const LabelRule rule(session->class_names(), session->outputs(), images);
  rule.require_labels(images);
  const std::string notice = rule.notice();
  if (!notice.empty()) cli::print_message("note", concat("--images=", folder, ": ", notice));
  return images;
}

std::string read_image(const LabelledImage& image, size_t most) {
  try {
    return read_text(image.path, most);
  } catch (const Error& error) {
    std::string message = error.what();
    if (const size_t at = message.find(image.path); at != message.npos)
      message.replace(at, image.path.size(), image.name);
    throw Error(error.fault(), message);
  }
}

LabelRule::LabelRule(std::span<const std::string> names, int64_t outputs, const std::vector<LabelledImage>& images)
    : outputs_(outputs) {
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty()) by_name_.emplace(names[i], static_cast<int64_t>(i));
  // Matches a folder "n01440764" to the class name "n01440764 tench", unless several names share the first word.
  std::map<std::string_view, std::optional<int64_t>> by_word;
  for (size_t i = 0; i < names.size(); ++i)
    if (const size_t space = names[i].find(' '); space != std::string::npos)
      if (const auto [at, is_new] =
              by_word.emplace(std::string_view(names[i]).substr(0, space), static_cast<int64_t>(i));
          !is_new)
        at->second.reset();
  for (const auto& [word, label] : by_word)
    if (label) by_name_.emplace(word, *label);
  const auto has_number = [&](const LabelledImage& image) { return number_of(image).has_value(); };
  const bool are_annotated = images.empty() || images.front().class_name.empty();
  if (by_name_.empty() && !are_annotated)
    folders_ = std::ranges::all_of(images, has_number) ? Folders::numbers : Folders::places;
}

std::optional<int64_t> LabelRule::number_of(const LabelledImage& image) const {
  const auto number = number_in(image.class_name);
  return number && *number < outputs_ ? number : std::nullopt;
}

std::optional<int64_t> LabelRule::label_of(const LabelledImage& image) const {
  if (const auto found = by_name_.find(image.class_name); found != by_name_.end()) return found->second;
  if (folders_ != Folders::places) return number_of(image);
  return image.place < outputs_ ? std::optional(image.place) : std::nullopt;
}

void LabelRule::require_labels(const std::vector<LabelledImage>& images) const {
  for (const LabelledImage& image : images)
    if (!image.class_name.empty() && !label_of(image))
      throw Error(Fault::data,
                  folders_ == Folders::places
                      ? concat("--images: ", image.path, ": its folder is number ", image.place,
                               ", and the model, which has recorded no names of classes, has outputs 0 to ",
                               outputs_ - 1, "; call the folders by the numbers of the outputs")
                      : concat("--images: ", image.path, ": ", image.class_name,
                               " is not one of the model's classes, such as ", by_name_.begin()->first));
}

std::string LabelRule::notice() const {
  if (folders_ == Folders::named) return "";
  const std::string reason = "the model has recorded no names of classes: ";
  if (folders_ == Folders::numbers)
    return reason +
           "folder names are used as output indices, from 0; dtrain-data numbers such folders from 1, in sorted order";
  return reason + "folders are numbered from 1 in sorted order, as in dtrain-data";
}

}  // namespace dtrain::serve
