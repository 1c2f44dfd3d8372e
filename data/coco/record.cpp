#include "data/coco/record.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

using Kind = Value::Kind;

constexpr std::array<std::pair<std::string_view, Key>, 15> kKeys{{
    {"id", Key::id},
    {"image_id", Key::image_id},
    {"category_id", Key::category_id},
    {"iscrowd", Key::is_crowd},
    {"ignore", Key::ignore},
    {"area", Key::area},
    {"score", Key::score},
    {"file_name", Key::file_name},
    {"coco_url", Key::coco_url},
    {"name", Key::name},
    {"width", Key::width},
    {"height", Key::height},
    {"bbox", Key::box},
    {"segmentation", Key::segmentation},
    {"is_crowd", Key::is_crowd},
}};

std::string_view name_of(Key key) {
  return std::find_if(kKeys.begin(), kKeys.end(), [&](const auto& entry) { return entry.second == key; })->first;
}

// Quotes untrusted text: shortened and without control characters.
std::string in_quotes(std::string_view text) {
  std::string shown = "'";
  for (const char c : text.substr(0, 40)) shown += static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  return shown + (text.size() > 40 ? "...'" : "'");
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Kind::absent:
      return "missing";
    case Kind::null:
      return "null";
    case Kind::boolean:
      return value.whole ? "true" : "false";
    case Kind::whole:
      return std::to_string(value.whole);
    case Kind::real:
      return concat(value.real);
    case Kind::string:
      return "the string " + in_quotes(value.text);
    case Kind::list:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return {};
}

std::optional<int64_t> whole_of(const Value& value) {
  constexpr double kExact = 9007199254740992;  // integers beyond 2^53 are not exact in double
  if (value.kind == Kind::whole) return value.whole;
  if (value.kind == Kind::real && std::abs(value.real) <= kExact && std::trunc(value.real) == value.real)
    return static_cast<int64_t>(value.real);
  return {};
}

// Numeric id of a string id.
int64_t number_of(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && std::to_string(number) == text) return number;
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<int64_t>(hash >> 3) + kFirstTextId;
}

bool is_count(double number) { return number >= 0 && number <= UINT32_MAX && std::trunc(number) == number; }

Rle from_runs(std::span<const double> runs, int64_t height, int64_t width) {
  Rle rle{height, width, {}};
  rle.counts.reserve(runs.size());
  for (const double run : runs) {
    if (!is_count(run)) throw Error(Fault::data, concat("a run of ", run, " pixels"));
    rle.counts.push_back(static_cast<uint32_t>(run));
  }
  check(rle);
  return rle;
}

}  // namespace

Key key_of(std::string_view name) {
  for (const auto& [known, key] : kKeys)
    if (known == name) return key;
  return Key::other;
}

void Record::clear() {
  for (Value& value : values) value.kind = Kind::absent;
  box.clear();
  polygons.clear();
  counts.kind = Kind::absent;
  size.clear();
  runs.clear();
  box_problem.clear();
  segmentation_problem.clear();
}

std::string Record::title() const {
  if (at(Key::id).kind == Kind::string) return concat(what, " ", in_quotes(at(Key::id).text));
  const std::optional<int64_t> id = whole_of(at(Key::id));
  return id ? concat(what, " ", *id) : concat(what, " at index ", index);
}

void Record::fail(const std::string& what_is_wrong) const {
  throw Error(Fault::data, concat(*where, ": ", title(), ": ", what_is_wrong));
}

void Record::fail(Key key, std::string_view expected) const {
  fail(concat(name_of(key), " is ", describe(at(key)), ", expected ", expected));
}

int64_t Record::whole(Key key) const {
  const std::optional<int64_t> value = whole_of(at(key));
  if (!value) fail(key, "a whole number");
  return *value;
}

Id Record::identifier(Key key) const {
  const Value& value = at(key);
  if (value.kind == Kind::string) return {number_of(value.text), value.text};
  const std::optional<int64_t> number = whole_of(value);
  if (!number) fail(key, "a whole number or a string");
  return {*number, {}};
}

double Record::number(Key key) const {
  const Value& value = at(key);
  if ((value.kind != Kind::whole && value.kind != Kind::real) || !std::isfinite(value.real)) fail(key, "a number");
  return value.real;
}

bool Record::flag(Key key) const {
  if (lacks(key)) return false;
  const std::optional<int64_t> value = at(key).kind == Kind::boolean ? at(key).whole : whole_of(at(key));
  if (!value || (*value != 0 && *value != 1)) fail(key, "0 or 1");
  return *value == 1;
}

const std::string& Record::text(Key key) const {
  if (at(key).kind != Kind::string) fail(key, "a string");
  return at(key).text;
}

std::optional<BoundingBox> Record::take_box() const {
  if (lacks(Key::box)) return {};
  if (at(Key::box).kind != Kind::list) fail(Key::box, "a list of x, y, width and height");
  if (!box_problem.empty()) fail(box_problem);
  if (box.empty()) return {};
  if (box.size() != 4) fail(concat("bbox has ", box.size(), " numbers, expected x, y, width and height"));
  return BoundingBox{box[0], box[1], box[2], box[3]};
}

Segmentation Record::take_segmentation() {
  if (lacks(Key::segmentation)) return {};
  const Kind kind = at(Key::segmentation).kind;
  if (kind != Kind::object && kind != Kind::list)
    fail(Key::segmentation, "a list of polygons, or an object with size and counts");
  if (!segmentation_problem.empty()) fail(segmentation_problem);
  if (kind == Kind::object) return take_rle();
  return polygons.empty() ? Segmentation() : std::move(polygons);
}

Rle Record::take_rle() const {
  if (size.size() != 2 || !is_count(size[0]) || !is_count(size[1]))
    fail("segmentation has no size of two whole numbers, height and width");
  if (counts.kind != Kind::string && counts.kind != Kind::list)
    fail("segmentation has no counts, expected a string or a list");
  const int64_t height = static_cast<int64_t>(size[0]), width = static_cast<int64_t>(size[1]);
  try {
    return counts.kind == Kind::string ? parse(counts.text, height, width) : from_runs(runs, height, width);
  } catch (const Error& error) {
    fail(concat("segmentation: ", error.what()));
  }
}

}  // namespace dtrain::data::coco
