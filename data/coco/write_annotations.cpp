#include "data/coco/write_annotations.h"

#include <nlohmann/json.hpp>

#include "data/coco/json_text.h"
#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

// The id as in the original file.
template <class Item>
std::string id_of(const Item& item) {
  return item.id_text.empty() ? std::to_string(item.id) : json_string(item.id_text);
}

void append_image(std::string& text, const AnnotatedImage& image) {
  text += concat("{\"id\": ", id_of(image), ", \"file_name\": ", json_string(image.file_name),
                 ", \"width\": ", image.width, ", \"height\": ", image.height, "}");
}

void append_category(std::string& text, const Category& category) {
  text += concat("{\"id\": ", id_of(category), ", \"name\": ", json_string(category.name), "}");
}

// "[", items joined by `separator`, "]".
template <class Items, class Append>
void append_list(std::string& text, const char* separator, const Items& items, Append append) {
  text += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) text += separator;
    first = false;
    append(text, item);
  }
  text += ']';
}

void append_annotation(std::string& text, const Annotation& annotation, const Annotations& all) {
  DT_CHECK(annotation.image < all.images.size() && annotation.category < all.categories.size(), "annotation ",
           annotation.id, " is about image ", annotation.image, " of ", all.images.size(), ", category ",
           annotation.category, " of ", all.categories.size());
  text += concat("{\"id\": ", annotation.id, ", \"image_id\": ", id_of(all.images[annotation.image]),
                 ", \"category_id\": ", id_of(all.categories[annotation.category]),
                 ", \"iscrowd\": ", annotation.is_crowd ? 1 : 0);
  append_json(text += ", \"area\": ", annotation.area);
  append_json(text += ", \"bbox\": ", annotation.box);
  if (const auto* polygons = std::get_if<Polygons>(&annotation.segmentation))
    append_json(text += ", \"segmentation\": ", *polygons);
  if (const auto* mask = std::get_if<Rle>(&annotation.segmentation)) append_json(text += ", \"segmentation\": ", *mask);
  text += '}';
}

}  // namespace

std::string to_json(const Annotations& annotations) {
  constexpr char kLines[] = ",\n";
  std::string text;
  append_list(text += "{\"images\": ", kLines, annotations.images, append_image);
  append_list(text += ",\n\"categories\": ", kLines, annotations.categories, append_category);
  append_list(text += ",\n\"annotations\": ", kLines, annotations.annotations,
              [&](std::string& to, const Annotation& one) { append_annotation(to, one, annotations); });
  return text + "}\n";
}

}  // namespace dtrain::data::coco
