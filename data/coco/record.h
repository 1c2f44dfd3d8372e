// An image, category, annotation or detection as COCO's JSON files list them, before anything is believed of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/coco/annotations.h"

namespace dtrain::data::coco {

enum class Key {
  id,
  image_id,
  category_id,
  is_crowd,
  area,
  score,
  file_name,
  name,
  width,
  height,
  box,
  segmentation,
  other,  // what is of no interest here
};

// The key of this name in the files; `iscrowd` and `is_crowd` are the same.
Key key_of(std::string_view name);

struct Value {
  enum class Kind { absent, null, boolean, whole, real, string, list, object };
  Kind kind = Kind::absent;
  int64_t whole = 0;  // of a boolean, too
  double real = 0;    // of whole numbers, too
  std::string text{};
};

struct Record {
  const std::string* where = nullptr;  // the file
  std::string_view what;               // "annotation"
  uint64_t index = 0;                  // in its list
  std::array<Value, static_cast<size_t>(Key::other)> values{};
  std::vector<double> box{};
  Polygons polygons{};
  Value counts{};  // of an RLE: a string, or a list, which is in runs
  std::vector<double> size{}, runs{};
  std::string problem{};  // the first thing that was wrong with it while it was parsed

  // Becomes the next record of its list.
  void clear();
  const Value& at(Key key) const { return values[static_cast<size_t>(key)]; }
  Value& at(Key key) { return values[static_cast<size_t>(key)]; }
  // Neither there nor null.
  bool lacks(Key key) const { return at(key).kind == Value::Kind::absent || at(key).kind == Value::Kind::null; }

  // All throw Error(Fault::data) that begins "FILE: annotation 123: ".
  [[noreturn]] void fail(const std::string& what_is_wrong) const;
  int64_t whole(Key key) const;  // 7.0 is a whole number, too
  double number(Key key) const;  // finite
  bool flag(Key key) const;      // false or true, 0 or 1; false where it is not there
  const std::string& text(Key key) const;
  std::optional<Box> take_box() const;  // nothing where there is none
  Segmentation take_segmentation();     // moved from

 private:
  [[noreturn]] void fail(Key key, std::string_view expected) const;
  Rle take_rle() const;
};

}  // namespace dtrain::data::coco
