// labelme: a JSON file per image, with shapes.
#include "data/annotations/labelme.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

#include <nlohmann/json.hpp>

#include "data/annotations/base64.h"
#include "data/annotations/folder_paths.h"
#include "data/annotations/label_set.h"
#include "data/annotations/labelme_shapes.h"
#include "data/image_tree.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/io/file_system.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/core/lower_case.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::data::annotations {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxFileBytes = size_t{kMaxRecordBytes} * 3 / 2;  // an image in base64, and its shapes

json document_of(std::string_view text, const std::string& where) {
  const json document = parse_json<json>(
      text, where, Fault::data, {.bytes = kMaxFileBytes, .depth = 8, .keys = 1000, .values = 2'000'000, .seconds = 60});
  if (!document.is_object() || !document.contains("shapes") || !document["shapes"].is_array())
    throw Error(Fault::data, where + ": no list shapes, expected a file of labelme");
  return document;
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t side_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double side = found->get<double>();
  return side >= 1 && side <= static_cast<double>(coco::kMaxMaskSide) ? static_cast<int64_t>(side) : 0;
}

// Splits of folders: the first part of the path that names one; else train.
std::string split_of_path(const std::string& item) {
  for (const fs::path& part : fs::path(item).parent_path())
    if (const std::string split = split_of_folder(part.string()); !split.empty())
      return split == "validation" ? "val" : split;
  return "train";
}

std::vector<std::string> json_files(const std::string& folder) try {
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator at(folder), end; at != end; ++at) {
    if (is_left_out(at->path().filename().string()))
      at.disable_recursion_pending();
    else if (!at->is_directory() && lower_case(at->path().extension().string()) == ".json")
      files.push_back(at->path().lexically_relative(folder).string());
  }
  std::ranges::sort(files);
  return files;
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              concat(folder, ": cannot be listed: ", error.code().message()));
}

LabelledImage read_labelme(const FolderPaths& paths, const std::string& item) {
  const std::string place = paths.absolute(item), home = fs::path(item).parent_path().string();
  const LabelmeFiles files{.find =
                               [&](const std::string& stated) {
                                 const std::string name = fs::path(FolderPaths::inside(stated)).filename().string();
                                 const std::string found = paths.find(stated, home.empty() ? "." : home);
                                 const std::string beside = home.empty() ? name : home + "/" + name;
                                 return !found.empty() ? found : !name.empty() && paths.has_file(beside) ? beside : "";
                               },
                           .measure = [&](const std::string& image) { return measured_size(paths.absolute(image)); }};
  try {
    LabelledImage image = parse_labelme(read_text(place, kMaxFileBytes), item, files);
    if (image.file_name.empty()) {
      image.file_name = (fs::path(item).parent_path() / fs::path(item).stem()).string();
      image.embedded = item;
    }
    return image;
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    const std::string_view what = error.what();
    throw BadRecordError(place, what.starts_with(item + ": ") ? what.substr(item.size() + 2) : what);
  }
}

ImageSize size_of_embedded(const std::string& bytes) {
  ImageDecoder decoder;
  const ImageInfo info = decoder.open(std::as_bytes(std::span(bytes)), Orientation::apply);
  return {info.height, info.width};
}

}  // namespace

std::string embedded_image(const std::string& path) {
  const json document = document_of(read_text(path, kMaxFileBytes), path);
  const std::string text = text_at(document, "imageData");
  if (text.empty()) throw Error(Fault::data, path + ": no imageData");
  try {
    return decode_base64(text);
  } catch (const Error& error) {
    throw Error(Fault::data, concat(path, ": imageData: ", error.what()));
  }
}

LabelledImage parse_labelme(std::string_view text, const std::string& title, const LabelmeFiles& files) {
  const json document = document_of(text, title);
  LabelledImage image;
  const std::string stated = text_at(document, "imagePath"), data = text_at(document, "imageData");
  if (!stated.empty()) image.file_name = files.find(stated);
  if (image.file_name.empty() && data.empty())
    throw Error(Fault::data, concat(title, ": no image file '", stated, "', and no imageData"));
  image.size = {side_at(document, "imageHeight"), side_at(document, "imageWidth")};
  if (image.size.height == 0 || image.size.width == 0) {
    image.size = image.file_name.empty() ? size_of_embedded(decode_base64(data)) : files.measure(image.file_name);
    image.findings.add("images without width and height", "measured", title);
  }
  coco::check_mask_size(image.size.height, image.size.width);
  add_shapes(document["shapes"], title, image);
  return image;
}

LabelSet open_labelme(const std::string& folder, const LabelOptions&) {
  LabelSet set{.folder = folder};
  const std::vector<std::string> all = json_files(folder);
  for (const char* name : {"train", "val", "test"}) {
    LabelFiles files{.name = name, .where = folder};
    for (const std::string& item : all)
      if (split_of_path(item) == name) files.items.push_back(item);
    if (!files.items.empty()) set.splits.push_back(std::move(files));
  }
  if (set.splits.empty()) throw Error(Fault::data, folder + ": no JSON files of labelme in it");
  set.read = [paths = FolderPaths(folder)](const std::string& item) { return read_labelme(paths, item); };
  return set;
}

}  // namespace dtrain::data::annotations
