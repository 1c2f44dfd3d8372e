#include "data/coco/image_record.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "data/coco/object_checks.h"
#include "data/coco/object_record.h"
#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

struct Name {
  std::string relative{};  // with forward slashes
  std::string stated{};
  std::string_view kind{};  // kind of finding; empty without one
};

constexpr std::string_view kAbsolute = "file names that are absolute", kAddress = "images named by coco_url alone";
constexpr size_t kMaxNameBytes = 4096;  // PATH_MAX on Linux

bool stays_in_its_folder(const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos) return false;
  const std::filesystem::path path(name);
  return !path.is_absolute() && path.has_filename() && std::find(path.begin(), path.end(), "..") == path.end();
}

// Windows drive prefix "C:/".
bool has_drive(std::string_view name) {
  return name.size() >= 3 && std::isalpha(name[0] & 0x7f) && name.substr(1, 2) == ":/";
}

std::string without_root(std::string name) {
  if (has_drive(name)) name.erase(0, 2);
  return name.substr(std::min(name.find_first_not_of('/'), name.size()));
}

// Last folder and file name of a URL, as in LVIS's tools.
std::string end_of(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  const size_t name = path.rfind('/');
  if (name == std::string::npos) return path;
  const size_t folder = path.rfind('/', name - 1);
  return name == 0 || folder == std::string::npos ? path.substr(name + 1) : path.substr(folder + 1);
}

Name name_of(const Record& record) {
  Name name;
  if (record.lacks(Key::file_name) && !record.lacks(Key::coco_url)) {
    name = {end_of(record.text(Key::coco_url)), record.text(Key::coco_url), kAddress};
  } else {
    name.stated = name.relative = record.text(Key::file_name);
    if (name.stated.find('\\') != std::string::npos) name.kind = "file names with backslashes";
    std::ranges::replace(name.relative, '\\', '/');
    if (name.relative.starts_with('/') || has_drive(name.relative)) name.kind = kAbsolute;
  }
  if (!name.kind.empty()) name.relative = without_root(name.relative);
  if (name.stated.size() > kMaxNameBytes)
    record.fail(concat("a file name of ", name.stated.size(), " bytes, expected at most ", kMaxNameBytes));
  if (!stays_in_its_folder(name.relative)) record.fail("file_name leads out of the folder of images, or to none");
  return name;
}

// Names of files that are never opened are not validated, as in pycocotools.
std::string unopened_name(const Record& record) try {
  return record.at(Key::file_name).kind == Value::Kind::string ? name_of(record).relative : "";
} catch (const Error&) {
  return "";
}

void take_size(const Record& record, AnnotatedImage& image) {
  try {
    const int64_t height = record.whole(Key::height), width = record.whole(Key::width);
    check_mask_size(height, width);
    image.height = height;
    image.width = width;
  } catch (const Error&) {
    image.height = image.width = 0;
  }
}

// Fallback without access to the files.
void settle(AnnotatedImage& image, const Name& name) {
  if (name.kind == kAbsolute || name.kind == kAddress)
    image.file_name = std::filesystem::path(image.file_name).filename().string();
  if (image.width == 0) throw Error(Fault::data, "no width and height of 1 to 65500 pixels");
}

bool complete(AnnotatedImage& image, const Name& name, const Record& record, const AnnotationOptions& options,
              Annotations& result) {
  const bool has_size = image.width > 0;
  if (name.kind.empty() && has_size) return true;
  try {
    if (options.complete)
      options.complete(image, name.stated);
    else
      settle(image, name);
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    result.findings.add(kUnusableImages, kLeftOut, concat(record.title(), ": ", error.what()));
    result.unusable.push_back({name.stated, error.what()});
    return false;
  }
  if (!name.kind.empty())
    result.findings.add(name.kind, "looked for in the folder of images", record.title(),
                        name.stated.find("://") == name.stated.npos);
  if (!has_size) result.findings.add("images without width and height", "measured", record.title());
  return true;
}

}  // namespace

std::optional<AnnotatedImage> take_image_record(Record& record, const AnnotationOptions& options, Annotations& result) {
  Id id = record.identifier(Key::id);
  AnnotatedImage image{.id = id.number, .id_text = std::move(id.text)};
  const bool is_looked_for = options.use == AnnotationOptions::Use::training || options.complete;
  take_size(record, image);
  if (!is_looked_for) {
    image.file_name = unopened_name(record);
    return image;
  }
  if (record.lacks(Key::file_name) && record.lacks(Key::coco_url)) {
    result.findings.add("images without file_name", kLeftOut, record.title());
    return {};
  }
  const Name name = name_of(record);
  image.file_name = name.relative;
  if (!complete(image, name, record, options, result)) return {};
  return image;
}

}  // namespace dtrain::data::coco
