#include "data/annotations/yolo_config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "data/annotations/folder_paths.h"
#include "data/annotations/labelled_image.h"
#include "data/annotations/yaml.h"
#include "data/image_tree.h"
#include "data/label_file.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"

namespace dtrain::data::annotations {
namespace {

namespace fs = std::filesystem;
using Kind = YamlValue::Kind;

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  for (TextLine& line : read_lines(path)) lines.push_back(std::move(line.text));
  return lines;
}

// Names of classes, which are numbered by their lines.
std::vector<std::string> class_lines(const std::string& path) {
  std::vector<std::string> classes;
  for (TextLine& line : read_lines(path)) {
    if (line.number != classes.size() + 1)
      throw Error(Fault::data, concat(path, ": line ", classes.size() + 1,
                                      " is empty, expected a class name in each line, which numbers the classes"));
    classes.push_back(std::move(line.text));
  }
  return classes;
}

std::optional<size_t> index_of(const std::string& text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// A list of names, or a map from their numbers, which are 0 to n - 1.
std::vector<std::string> names_in(const YamlValue& yaml, const std::string& where) {
  const YamlValue *names = yaml.find("names"), *count = yaml.find("nc");
  std::vector<std::string> classes;
  const std::optional<size_t> stated = count ? index_of(count->text) : std::nullopt;
  if (count && !stated)
    throw Error(Fault::data, concat(where, ": nc is '", count->text, "', expected the number of classes"));
  if (!names) {
    if (!stated || *stated > kMaxYamlValues)
      throw Error(Fault::data, concat(where, ": no names of classes, expected 'names:'"));
    for (size_t i = 0; i < *stated; ++i) classes.push_back(concat("class_", i));
    return classes;
  }
  const auto take = [&](size_t at, const YamlValue& name) {
    if (name.kind != Kind::scalar || name.text.empty())
      throw Error(Fault::data, concat(where, ": the name of class ", at, " is no text"));
    classes[at] = name.text;
  };
  const size_t total = names->kind == Kind::list ? names->items.size() : names->entries.size();
  classes.resize(total);
  for (size_t i = 0; i < names->items.size(); ++i) take(i, names->items[i]);
  for (const auto& [key, name] : names->entries) {
    const std::optional<size_t> at = index_of(key);
    if (!at || *at >= total || !classes[*at].empty())
      throw Error(Fault::data, concat(where, ": names has the key '", key, "', expected 0 to ", total - 1));
    take(*at, name);
  }
  if (total == 0) throw Error(Fault::data, where + ": no names of classes, expected 'names:' with a list or map");
  if (stated && *stated != total)
    throw Error(Fault::data, concat(where, ": nc is ", *stated, ", but there are ", total, " names"));
  return classes;
}

// darknet's paths start where its program is started: any end of a path may be the one in the folder.
enum class Paths { of_ultralytics, of_darknet };

std::string find(const FolderPaths& paths, const std::string& stated, const std::string& home, Paths kind) {
  const std::string found = paths.find(stated, home);
  return found.empty() && kind == Paths::of_darknet ? paths.find("/" + stated, "") : found;
}

// Images of a split: a folder, a list in a text file, or several of these.
void add_images(const FolderPaths& paths, Paths kind, const YamlValue& value, const std::string& prefix,
                LabelFiles& files, coco::Findings& findings) {
  for (const YamlValue& one : value.items) add_images(paths, kind, one, prefix, files, findings);
  if (value.kind != Kind::scalar || value.text.empty()) return;
  const std::string found = find(paths, value.text, prefix, kind);
  if (found.empty()) {
    if (files.name != "test")
      throw Error(Fault::data,
                  concat(files.where, ": no folder or list of images ", value.text, " in ", paths.folder()));
    findings.add("test splits whose images are missing", "left out", concat(files.where, ": ", value.text), false);
  } else if (fs::is_directory(paths.absolute(found))) {
    const std::vector<std::string> images = paths.images_below(found);
    files.items.insert(files.items.end(), images.begin(), images.end());
  } else {
    const std::string list = paths.absolute(found), home = fs::path(found).parent_path().string();
    for (const std::string& line : lines_of(list)) {
      const std::string image = find(paths, line, home, kind);
      files.items.push_back(image.empty() ? FolderPaths::inside(line) : image);
    }
  }
}

// Folders by convention; none without images.
std::vector<LabelFiles> conventional_splits(const FolderPaths& paths) {
  std::vector<LabelFiles> splits;
  for (const auto& [name, split] : {std::pair("train", "train"), {"val", "val"}, {"valid", "val"}, {"test", "test"}}) {
    for (const std::string& inner : {concat("images/", name), concat(name, "/images"), std::string(name)}) {
      LabelFiles files{.name = split, .where = paths.absolute(inner), .items = paths.images_below(inner)};
      if (files.items.empty()) continue;
      splits.push_back(std::move(files));
      break;
    }
  }
  if (splits.empty()) splits.push_back({"train", paths.folder(), paths.images_below("")});
  if (splits.front().items.empty()) splits.clear();
  return splits;
}

YoloConfig config_of_yaml(const std::string& file) {
  const YamlValue yaml = parse_yaml(read_text(file, kMaxYamlBytes + 1), file);
  YoloConfig config{.folder = directory_of_path(file), .classes = names_in(yaml, file)};
  config.has_keypoints = yaml.find("kpt_shape") != nullptr;
  const FolderPaths paths(config.folder);
  const YamlValue* base = yaml.find("path");
  const std::string prefix = base ? base->text : "";
  bool names_splits = false;
  for (const auto& [key, split] : {std::pair("train", "train"), {"val", "val"}, {"valid", "val"}, {"test", "test"}}) {
    const YamlValue* value = yaml.find(key);
    names_splits = names_splits || value;
    if (!value || (value->kind == Kind::scalar && value->text.empty())) continue;
    LabelFiles files{.name = split, .where = file};
    add_images(paths, Paths::of_ultralytics, *value, prefix, files, config.findings);
    if (!files.items.empty()) config.splits.push_back(std::move(files));
  }
  if (!names_splits) config.splits = conventional_splits(paths);
  if (config.splits.empty())
    throw Error(Fault::data, file + ": names no images, expected 'train:' or 'val:' with a folder or list of images");
  return config;
}

// "train = data/train.txt" and so on.
YoloConfig config_of_darknet(const std::string& file) {
  YamlValue yaml{.kind = Kind::map};
  for (const std::string& line : lines_of(file)) {
    const size_t equals = line.find('=');
    if (equals == line.npos) continue;
    const auto trim = [](std::string text) {
      text.erase(0, std::min(text.find_first_not_of(" \t"), text.size()));
      text.erase(text.find_last_not_of(" \t") + 1);
      return text;
    };
    yaml.entries.emplace_back(trim(line.substr(0, equals)), YamlValue{.text = trim(line.substr(equals + 1))});
  }
  YoloConfig config{.folder = directory_of_path(file)};
  const FolderPaths paths(config.folder);
  const YamlValue* names = yaml.find("names");
  const std::string found = names ? find(paths, names->text, "", Paths::of_darknet) : "";
  if (found.empty()) throw Error(Fault::data, file + ": no file of class names, expected 'names = obj.names'");
  config.classes = class_lines(paths.absolute(found));
  for (const auto& [split, name] : {std::pair("train", "train"), {"validation", "val"}, {"test", "test"}}) {
    LabelFiles files{.name = name, .where = file};
    std::string first;
    for (const auto& [key, value] : yaml.entries) {
      if (split_of_folder(key) != split) continue;
      if (!first.empty()) throw Error(Fault::data, concat(file, ": ", first, " and ", key, " name one split"));
      first = key;
      add_images(paths, Paths::of_darknet, value, "", files, config.findings);
    }
    if (!files.items.empty()) config.splits.push_back(std::move(files));
  }
  if (config.splits.empty()) throw Error(Fault::data, file + ": names no images, expected 'train = train.txt'");
  return config;
}

YoloConfig config_of_names(const std::string& folder, const std::string& names) {
  YoloConfig config{.folder = folder, .classes = class_lines(names)};
  config.splits = conventional_splits(FolderPaths(folder));
  if (config.splits.empty()) throw Error(Fault::data, folder + ": no images in it");
  return config;
}

}  // namespace

YoloConfig read_yolo_config(const std::string& place) {
  std::error_code unknown;
  if (!fs::is_directory(place, unknown)) return config_of_yaml(place);
  const FolderPaths paths(place);
  for (const char* name : {"data.yaml", "data.yml", "dataset.yaml", "dataset.yml"})
    if (paths.has_file(name)) return config_of_yaml(place + "/" + name);
  const std::vector<std::string> yamls = paths.files_with({".yaml", ".yml"});
  if (yamls.size() > 1)
    throw Error(Fault::data, concat(place, ": ", yamls[0], " and ", yamls[1], "; give the file instead of the folder"));
  if (yamls.size() == 1) return config_of_yaml(place + "/" + yamls[0]);
  for (const std::string& name : paths.files_with({".data"})) return config_of_darknet(place + "/" + name);
  for (const char* name : {"classes.txt", "obj.names", "labels/classes.txt", "labels/train/classes.txt"})
    if (paths.has_file(name)) return config_of_names(place, place + "/" + name);
  throw Error(Fault::data, place + ": no YOLO data set: expected data.yaml, obj.data, classes.txt or obj.names in it");
}

}  // namespace dtrain::data::annotations
