#include "data/coco/object_record.h"

#include <algorithm>

#include "data/coco/object_checks.h"
#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

bool is_training(const AnnotationOptions& options) { return options.use == AnnotationOptions::Use::training; }

// Id from the file, or one that no file has.
void take_id(const Record& record, PendingObject& object, Findings& findings) {
  try {
    const Id id = record.identifier(Key::id);
    object.annotation.id = id.number;
    object.has_id = id.text.empty();
  } catch (const Error&) {
    object.annotation.id = -1 - static_cast<int64_t>(record.index);
    object.has_id = false;
    findings.add("annotations without an id", "used all the same", record.title());
  }
}

// Keeps the polygons that pycocotools rasterises. It drops a trailing odd coordinate, two vertices have no interior,
// and if the first part has only two it parses the parts as boxes and fails.
void keep_filled_polygons(Polygons& polygons, const Record& record, Findings& findings) {
  if (polygons.front().size() <= 4) {
    findings.add(kShortPolygon, "first parts, whose objects have no mask then", record.title());
    polygons.clear();
    return;
  }
  for (std::vector<double>& polygon : polygons)
    if (polygon.size() % 2 != 0) polygon.pop_back();
  std::erase_if(polygons, [&](const std::vector<double>& polygon) {
    if (has_far_corner(polygon)) findings.add(kFarPolygon, kLeftOut, record.title());
    return polygon.size() < 6 || has_far_corner(polygon);
  });
  if (polygons.empty()) polygons.push_back(std::vector<double>(6, 0));
}

// Returns false if the object is unusable for training.
bool take_training_mask(Record& record, Annotation& annotation, Findings& findings) {
  annotation.segmentation = record.take_segmentation();
  Polygons* const polygons = std::get_if<Polygons>(&annotation.segmentation);
  if (!polygons) return true;
  return keep_polygons(*polygons, record.title(), findings);
}

void take_scoring_mask(Record& record, PendingObject& object, const AnnotationOptions& options, Findings& findings) {
  if (!options.masks && object.has_box) return;
  Segmentation& segmentation = object.annotation.segmentation;
  try {
    segmentation = record.take_segmentation();
  } catch (const Error& error) {
    if (!object.has_box) throw;
    findings.add("masks that cannot be read", kLeftOut, reason_of(error, *record.where));
  }
  Polygons* const polygons = std::get_if<Polygons>(&segmentation);
  if (polygons) keep_filled_polygons(*polygons, record, findings);
  if (polygons && polygons->empty()) segmentation = {};
}

std::optional<PendingObject> read_object(Record& record, const AnnotationOptions& options, Findings& findings) {
  PendingObject object;
  object.index = static_cast<uint32_t>(record.index);
  take_id(record, object, findings);
  object.image_id = record.identifier(Key::image_id).number;
  object.category_id = record.identifier(Key::category_id).number;
  Annotation& annotation = object.annotation;
  annotation.is_crowd = record.flag(Key::is_crowd);
  if (record.at(Key::ignore).real == 1 && !record.lacks(Key::ignore) && is_training(options)) {
    findings.add("objects with ignore: 1", options.skip_ignored ? kLeftOut : "used like all others", record.title(),
                 /*is_fault=*/false);
    if (options.skip_ignored) return {};
  }
  object.has_area = !record.lacks(Key::area);
  if (object.has_area) annotation.area = record.number(Key::area);
  if (const std::optional<BoundingBox> box = record.take_box()) {
    if (is_training(options) && !check_box(*box, record.title(), findings)) return {};
    annotation.box = *box;
    object.has_box = true;
  }
  if (!is_training(options)) {
    take_scoring_mask(record, object, options, findings);
    return object;
  }
  if (annotation.area < 0) record.fail(concat("area is ", annotation.area));
  if (!take_training_mask(record, annotation, findings)) return {};
  return object;
}

}  // namespace

std::string PendingObject::title() const {
  return has_id ? concat("annotation ", annotation.id) : concat("annotation at index ", index);
}

std::string reason_of(const std::exception& error, const std::string& where) {
  const std::string_view text = error.what();
  return std::string(text.starts_with(where + ": ") ? text.substr(where.size() + 2) : text);
}

std::optional<PendingObject> take_object(Record& record, const AnnotationOptions& options, Findings& findings) {
  try {
    return read_object(record, options, findings);
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    findings.add("objects that are not in COCO's form", kLeftOut, reason_of(error, *record.where));
    return {};
  }
}

}  // namespace dtrain::data::coco
