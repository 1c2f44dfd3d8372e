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

// An id, which some files give as a string: that string, and a number of its own. A string that is a number as C writes
// it has that number, any other one a hash between 2^61 and 2^62.
struct Id {
  int64_t number = 0;
  std::string text{};  // empty for an id that is a number
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
  std::string box_problem{}, segmentation_problem{};  // the first thing that was wrong while they were parsed

  // Becomes the next record of its list.
  void clear();
  const Value& at(Key key) const { return values[static_cast<size_t>(key)]; }
  Value& at(Key key) { return values[static_cast<size_t>(key)]; }
  // Neither there nor null.
  bool lacks(Key key) const { return at(key).kind == Value::Kind::absent || at(key).kind == Value::Kind::null; }

  // "annotation 123", or "annotation at index 4" where it has no id.
  std::string title() const;

  // All throw Error(Fault::data) that begins "FILE: annotation 123: ".
  [[noreturn]] void fail(const std::string& what_is_wrong) const;
  int64_t whole(Key key) const;  // 7.0 is a whole number, too
  Id identifier(Key key) const;  // a whole number or a string
  double number(Key key) const;  // finite
  bool flag(Key key) const;      // false or true, 0 or 1; false where it is not there
  const std::string& text(Key key) const;
  // Four numbers, which need not make sense; nothing where there is no box, or an empty list.
  std::optional<Box> take_box() const;
  // Moved from. Polygons are as they stand there, and none of them may be one.
  Segmentation take_segmentation();

 private:
  [[noreturn]] void fail(Key key, std::string_view expected) const;
  Rle take_rle() const;
};

}  // namespace dtrain::data::coco
