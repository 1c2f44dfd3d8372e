#include "data/image_tree.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "data/label_file.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/io/file_system.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/core/lower_case.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

// Files, or folders, of `folder`, sorted, without those for which is_left_out() is true.
std::vector<fs::path> sorted_entries(const std::string& folder, bool folders) try {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() == folders && !is_left_out(entry.path().filename().string()))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              folder + ": cannot be listed: " + error.code().message());
}

// Images of a folder without subfolders; images in subfolders would be missed silently.
std::vector<fs::path> images_of(const std::string& folder) {
  if (const std::vector<fs::path> nested = sorted_entries(folder, true); !nested.empty())
    throw Error(Fault::data, nested[0].string() + ": is a folder among images; move its images beside it, or it away");
  return sorted_entries(folder, false);
}

// Whether every consumer of ImageNet records can decode it: an RGB or grey JPEG.
bool is_plain(const ImageInfo& info) { return info.format == ImageFormat::jpeg && info.components != 4; }

std::string record_of(const TreeImage& image, bool mend, std::string& warning) {
  try {
    const std::string file = bytes_of(image);
    std::span<const std::byte> encoded = std::as_bytes(std::span(file));
    ImageDecoder decoder;
    const ImageInfo info = decoder.open(encoded);
    const ImageView pixels = decoder.decode();
    if (!decoder.damage().empty()) throw Error(Fault::data, damaged_image(decoder.damage()));
    warning = decoder.warning();
    std::string format = name_of(info.format);
    std::vector<std::byte> mended;
    if (mend && !is_plain(info)) {
      encoded = mended =
          encode_jpeg(pixels, {.quality = 100, .sampling = Sampling::s444, .orientation = info.orientation});
      format = "JPEG";
    }
    return image_example({.encoded = encoded,
                          .format = format,
                          .width = info.width,
                          .height = info.height,
                          .label = image.label,
                          .synset = image.synset,
                          .text = "",
                          .filename = image.filename,
                          .boxes = image.boxes});
  } catch (const Error& error) {
    const BadRecordError placed(image.path, error.what());
    if (error.fault() == Fault::data) throw placed;
    throw Error(error.fault(), placed.what());
  }
}

// Label of each class. Throws Error for a duplicate class.
std::map<std::string, int64_t> number_classes(const std::vector<std::string>& classes, int64_t first_label) {
  std::map<std::string, int64_t> labels;
  for (const std::string& name : classes) {
    const bool added = labels.emplace(name, first_label + static_cast<int64_t>(labels.size())).second;
    if (!added) throw Error(Fault::data, concat("class ", name, " is listed twice"));
  }
  return labels;
}

}  // namespace

bool is_left_out(const std::string& name) {
  return name.starts_with('.') || name == "__MACOSX" || name == "@eaDir" || name == "$RECYCLE.BIN" ||
         name == "System Volume Information" || name == "lost+found";
}

std::string split_of_folder(const std::string& name) {
  const std::string lower = lower_case(name);
  if (lower == "train" || lower == "training") return "train";
  if (lower == "validation" || lower == "val" || lower == "valid") return "validation";
  return lower == "test" || lower == "testing" ? "test" : "";
}

std::vector<std::string> class_folders(const std::string& root) {
  std::vector<std::string> names;
  for (const fs::path& path : sorted_entries(root, true)) names.push_back(path.filename().string());
  return names;
}

std::vector<TreeImage> list_image_tree(const std::string& root, const std::vector<std::string>& classes,
                                       int64_t first_label, bool partial) {
  const std::map<std::string, int64_t> labels = number_classes(classes, first_label);
  std::vector<TreeImage> images;
  size_t found = 0;
  for (const fs::path& folder : sorted_entries(root, true)) {
    const std::string synset = folder.filename().string();
    const auto label = labels.find(synset);
    if (label == labels.end())
      throw Error(Fault::data,
                  concat(folder.string(), ": not one of the ", classes.size(), " classes that are listed"));
    ++found;
    for (const fs::path& path : images_of(folder.string()))
      images.push_back(
          {.path = path.string(), .filename = path.filename().string(), .label = label->second, .synset = synset});
  }
  if (!partial && found < classes.size())
    throw Error(Fault::data, concat(root, ": holds ", found, " of the ", classes.size(), " classes that are listed"));
  if (images.empty()) throw Error(Fault::data, concat(root, ": no images; expected ", root, "/<class>/<image>"));
  return images;
}

std::vector<TreeImage> list_labelled_images(const std::string& folder, const std::vector<std::string>& classes,
                                            int64_t first_label, const std::string& labels_file) {
  std::vector<TreeImage> images;
  for (const fs::path& path : images_of(folder))
    images.push_back({.path = path.string(), .filename = path.filename().string()});
  label_by_lines(images, classes, first_label, labels_file, folder);
  return images;
}

void label_by_class(std::vector<TreeImage>& images, const std::vector<std::string>& classes, int64_t first_label,
                    const std::string& place) {
  const std::map<std::string, int64_t> labels = number_classes(classes, first_label);
  for (TreeImage& image : images) {
    const auto label = labels.find(image.synset);
    if (label == labels.end())
      throw Error(Fault::data,
                  concat(place, ": ", image.synset, " is not one of the ", classes.size(), " classes that are listed"));
    image.label = label->second;
  }
}

std::string bytes_of(const TreeImage& image) {
  if (!image.archive) return read_text(image.path, kMaxRecordBytes);
  if (image.bytes > kMaxRecordBytes)
    throw Error(Fault::data, concat(image.path, ": ", image.bytes, " bytes, expected at most ", kMaxRecordBytes));
  std::string bytes(static_cast<size_t>(image.bytes), '\0');
  image.archive->read(image.offset, bytes.data(), bytes.size());
  return bytes;
}

std::string tree_record(const TreeImage& image, std::string& warning) { return record_of(image, true, warning); }
std::string verbatim_record(const TreeImage& image, std::string& warning) { return record_of(image, false, warning); }

}  // namespace dtrain::data
