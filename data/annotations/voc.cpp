// PASCAL VOC's XML files and SegmentationObject images.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <span>

#include <boost/property_tree/ptree.hpp>

#include "data/annotations/image_folder.h"
#include "data/annotations/instance_masks.h"
#include "data/annotations/label_set.h"
#include "data/annotations/voc_splits.h"
#include "data/coco/object_checks.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/xml.h"

namespace dtrain::data::annotations {
namespace {

namespace fs = std::filesystem;
using Tree = boost::property_tree::ptree;

constexpr const char* kSegmentation = "SegmentationObject";

std::string text_at(const Tree& tree, const char* key) { return tree.get(key, std::string()); }

bool flag_at(const Tree& tree, const char* key) {
  const double value = number_of(text_at(tree, key));
  return value == 1;
}

int64_t side_at(const Tree& tree, const char* key) {
  const double side = number_of(text_at(tree, key));
  return side >= 1 && side <= static_cast<double>(coco::kMaxMaskSide) && std::trunc(side) == side
             ? static_cast<int64_t>(side)
             : 0;
}

coco::BoundingBox box_of(const Tree& box, VocBoxes rule) {
  const double xmin = number_of(text_at(box, "xmin")), ymin = number_of(text_at(box, "ymin")),
               xmax = number_of(text_at(box, "xmax")), ymax = number_of(text_at(box, "ymax"));
  const double first = rule == VocBoxes::zero_based ? 0 : 1, last = rule == VocBoxes::inclusive ? 1 : 0;
  return {xmin - first, ymin - first, xmax - xmin + last, ymax - ymin + last};
}

class VocReader {
 public:
  VocReader(const std::string& folder, const LabelOptions& options, const std::vector<LabelFiles>& splits)
      : folder_(folder), options_(options) {
    for (const LabelFiles& files : splits)
      for (const std::string& item : files.items) {
        const std::string place = images_of(item);
        if (!images_.contains(place)) images_.emplace(place, ImageFolder(folder, place));
      }
  }

  bool is_missing(const std::string& item) const {
    std::error_code unknown;
    return fs::symlink_status(fs::path(folder_) / item, unknown).type() == fs::file_type::not_found;
  }

  LabelledImage read(const std::string& item) const try {
    if (is_missing(item)) return without_objects(item);
    const Tree document = parse_xml(read_text((fs::path(folder_) / item).string(), XmlOptions{}.most_bytes), item);
    const auto root = document.get_child_optional("annotation");
    if (!root) throw Error(Fault::data, concat(item, ": no element annotation, expected an annotation of PASCAL VOC"));
    LabelledImage image;
    image.file_name = image_of(item, *root);
    take_size(*root, item, image);
    std::vector<coco::Rle> masks;
    const bool has_masks = options_.masks && read_masks(item, image, masks);
    size_t number = 0;
    for (const auto& [name, object] : *root)
      if (name == "object") take_object(object, item, ++number, has_masks, masks, image);
    if (has_masks && masks.size() > number)
      image.findings.add("objects of SegmentationObject without a box", coco::kLeftOut, item);
    return image;
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    const std::string place = (fs::path(folder_) / item).string();
    const std::string_view what = error.what();
    throw BadRecordError(place, what.starts_with(item + ": ") ? what.substr(item.size() + 2) : what);
  }

 private:
  // Some tools write no XML file for an image without objects, but list it.
  LabelledImage without_objects(const std::string& item) const {
    LabelledImage image{.file_name = images_.at(images_of(item)).with_stem(fs::path(item).stem().string())};
    if (image.file_name.empty()) throw Error(Fault::data, item + ": neither this file nor an image of its name exists");
    image.size = measured_size((fs::path(folder_) / image.file_name).string());
    image.findings.add("images without an XML file", "used without objects", item, /*is_fault=*/false);
    return image;
  }

  // Folder of the images of an XML file.
  static std::string images_of(const std::string& item) {
    return item.starts_with("Annotations/") ? "JPEGImages" : fs::path(item).parent_path().string();
  }

  std::string image_of(const std::string& item, const Tree& root) const {
    std::string stem = fs::path(item).stem().string();
    const ImageFolder& images = images_.at(images_of(item));
    if (std::string found = images.with_stem(stem); !found.empty()) return found;
    std::string stated = text_at(root, "filename");
    if (const size_t slash = stated.find_last_of("/\\"); slash != stated.npos) stated.erase(0, slash + 1);
    for (const std::string& found : {images.with_name(stated), images.with_stem(stated)})
      if (!found.empty()) return found;
    throw Error(Fault::data,
                concat(item, ": no image ", stem, " or '", stated, "' in ", folder_, "/", images_of(item)));
  }

  void take_size(const Tree& root, const std::string& item, LabelledImage& image) const {
    image.size = {side_at(root, "size.height"), side_at(root, "size.width")};
    if (image.size.height > 0 && image.size.width > 0)
      return coco::check_mask_size(image.size.height, image.size.width);
    image.size = measured_size((fs::path(folder_) / image.file_name).string());
    image.findings.add("images without width and height", "measured", item);
  }

  bool read_masks(const std::string& item, LabelledImage& image, std::vector<coco::Rle>& masks) const {
    const fs::path file = fs::path(folder_) / kSegmentation / (fs::path(item).stem().string() + ".png");
    std::error_code unknown;
    if (!item.starts_with("Annotations/") || !fs::is_regular_file(file, unknown)) return false;
    try {
      masks = read_instance_masks(file.string(), image.size);
      return true;
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      image.findings.add("SegmentationObject images that cannot be used", "their objects have no masks", error.what());
      return false;
    }
  }

  void take_object(const Tree& object, const std::string& item, size_t number, bool has_masks,
                   std::vector<coco::Rle>& masks, LabelledImage& image) const {
    const std::string title = concat(item, ": object ", number);
    LabelledObject taken{.class_name = text_at(object, "name"), .title = title};
    const auto box = object.get_child_optional("bndbox");
    if (taken.class_name.empty() || !box)
      return image.findings.add("objects without name or bndbox", coco::kLeftOut, title);
    taken.box = box_of(*box, options_.voc_boxes);
    if (flag_at(object, "difficult") && options_.difficult != Difficult::keep) {
      const bool drops = options_.difficult == Difficult::drop;
      image.findings.add("objects with difficult: 1", drops ? coco::kLeftOut : "marked as crowds", title,
                         /*is_fault=*/false);
      if (drops) return;
      taken.is_crowd = true;
    }
    if (has_masks) take_mask(number, masks, taken, image.findings);
    image.add(std::move(taken));
  }

  // Index i of SegmentationObject is the i-th object. A mask that does not cover its box belongs to another object.
  static void take_mask(size_t number, std::vector<coco::Rle>& masks, LabelledObject& object,
                        coco::Findings& findings) {
    constexpr double kLeastIou = .5;
    if (number > masks.size() || area(masks[number - 1]) == 0)
      return findings.add("objects that SegmentationObject lacks", "used without a mask", object.title);
    const coco::BoundingBox around[] = {bounds(masks[number - 1])}, boxes[] = {object.box};
    const uint8_t crowd[] = {0};
    if (!(coco::iou(around, boxes, crowd).front() >= kLeastIou))
      return findings.add("masks of SegmentationObject that do not fit the box", coco::kLeftOut, object.title);
    object.segmentation = std::move(masks[number - 1]);
  }

  std::string folder_;
  LabelOptions options_;
  std::map<std::string, ImageFolder> images_;  // by folder
};

}  // namespace

LabelSet open_voc(const std::string& folder, const LabelOptions& options) {
  LabelSet set{.folder = folder, .splits = voc_splits(folder)};
  const auto reader = std::make_shared<const VocReader>(folder, options, set.splits);
  std::erase_if(set.splits, [&](const LabelFiles& files) {
    const auto is_missing = [&](const std::string& item) { return reader->is_missing(item); };
    if (files.items.empty() || !std::ranges::all_of(files.items, is_missing)) return false;
    if (files.name != "test" || set.splits.size() == 1)
      throw Error(Fault::data, concat(files.where, ": none of the ", files.items.size(), " images of the split ",
                                      files.name, " has an XML file in Annotations"));
    set.findings.add("test splits without XML files", coco::kLeftOut, files.where, /*is_fault=*/false);
    return true;
  });
  set.read = [reader](const std::string& item) { return reader->read(item); };
  return set;
}

}  // namespace dtrain::data::annotations
