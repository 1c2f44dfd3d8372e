// Unvalidated record (image, category, annotation or detection) of a COCO JSON file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::data::coco {

enum class Key {
  id,
  image_id,
  category_id,
  is_crowd,
  ignore,
  area,
  score,
  file_name,
  coco_url,
  name,
  width,
  height,
  box,
  segmentation,
  other,  // any key not listed above
};

// Key by its name in the files; `iscrowd` and `is_crowd` are synonyms.
Key key_of(std::string_view name);

struct Value {
  enum class Kind { absent, null, boolean, whole, real, string, list, object };
  Kind kind = Kind::absent;
  int64_t whole = 0;  // also of a boolean
  double real = 0;    // also of an integer
  std::string text{};
};

// Id, which some files give as a string. A canonical decimal string has its numeric value, any other string a hash
// between 2^61 and 2^62.
struct Id {
  int64_t number = 0;
  std::string text{};  // empty for a numeric id
};

struct Record {
  const std::string* where = nullptr;  // the file
  std::string_view what;               // "annotation"
  uint64_t index = 0;                  // position in its list
  std::array<Value, static_cast<size_t>(Key::other)> values{};
  std::vector<double> box{};
  Polygons polygons{};
  Value counts{};  // of an RLE: a string, or a list, whose numbers are in runs
  std::vector<double> size{}, runs{};
  std::string box_problem{}, segmentation_problem{};  // first problem while parsing

  // Resets the record for the next one of its list.
  void clear();
  const Value& at(Key key) const { return values[static_cast<size_t>(key)]; }
  Value& at(Key key) { return values[static_cast<size_t>(key)]; }
  // Absent or null.
  bool lacks(Key key) const { return at(key).kind == Value::Kind::absent || at(key).kind == Value::Kind::null; }

  // "annotation 123", or "annotation at index 4" without an id.
  std::string title() const;

  // All throw Error(Fault::data) with the prefix "FILE: annotation 123: ".
  [[noreturn]] void fail(const std::string& what_is_wrong) const;
  int64_t whole(Key key) const;  // 7.0 counts as an integer
  Id identifier(Key key) const;  // an integer or a string
  double number(Key key) const;  // finite
  bool flag(Key key) const;      // false, true, 0 or 1; false if absent
  const std::string& text(Key key) const;
  // Four unvalidated numbers; nothing without a box, or for an empty list.
  std::optional<BoundingBox> take_box() const;
  // Moves the segmentation out. Polygons are unvalidated.
  Segmentation take_segmentation();

 private:
  [[noreturn]] void fail(Key key, std::string_view expected) const;
  Rle take_rle() const;
};

}  // namespace dtrain::data::coco
