// Parsing of the objects of an "instances" file.
#pragma once

#include <optional>

#include "data/coco/record.h"

namespace dtrain::data::coco {

inline constexpr uint32_t kNone = UINT32_MAX;  // invalid index

// Object whose image and category are resolved after the whole file is read.
struct PendingObject {
  Annotation annotation{};
  int64_t image_id = 0, category_id = 0;
  uint32_t index = 0;  // position in the list
  bool has_id = true, has_area = false, has_box = false;

  bool is_resolved() const { return annotation.image != kNone && annotation.category != kNone; }
  // "annotation 123", or "annotation at index 4".
  std::string title() const;
};

// Parses the usable parts of an object; nothing if it is unusable. Skipped parts are added to the findings.
std::optional<PendingObject> take_object(Record& record, const AnnotationOptions& options, Findings& findings);

// Message of an error about the file `where`, without the file name.
std::string reason_of(const std::exception& error, const std::string& where);

}  // namespace dtrain::data::coco
