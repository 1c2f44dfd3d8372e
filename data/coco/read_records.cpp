#include "data/coco/read_records.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

using Kind = Value::Kind;

// Character iterator for nlohmann's parser.
class Characters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Characters() = default;  // end iterator
  explicit Characters(JsonCharacters& source) : source_(&source) { ++*this; }

  const char& operator*() const { return c_; }
  Characters& operator++() {
    if (!source_->take(c_)) source_ = nullptr;
    return *this;
  }
  bool operator==(const Characters& other) const { return source_ == other.source_; }

 private:
  JsonCharacters* source_ = nullptr;
  char c_ = 0;
};

enum class Place { outside, file, list, record, box, polygons, polygon, rle, size, runs, other };

// SAX event handler. Errors inside a record are reported at its end, when its id is known.
class Events {
 public:
  Events(const std::string& where, const std::vector<RecordList>& lists, const JsonCharacters& characters)
      : where_(where), lists_(lists), characters_(characters), seen_(lists.size(), false) {
    record_.where = &where_;
  }

  bool null() { return value(Kind::null); }
  bool boolean(bool set) { return value(Kind::boolean, set, set); }
  bool number_integer(int64_t number) { return value(Kind::whole, number, static_cast<double>(number)); }
  bool number_unsigned(uint64_t number) {
    return number > INT64_MAX ? value(Kind::real, 0, static_cast<double>(number))
                              : number_integer(static_cast<int64_t>(number));
  }
  bool number_float(double number, const std::string&) { return value(Kind::real, 0, number); }
  bool string(std::string& text) { return value(Kind::string, 0, 0, &text); }
  bool binary(nlohmann::json::binary_t&) { return true; }  // not a JSON type
  bool key(std::string& name);
  bool start_object(size_t) { return enter(Kind::object); }
  bool end_object() { return leave(); }
  bool start_array(size_t) { return enter(Kind::list); }
  bool end_array() { return leave(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error);
  // Call at the end of the text.
  void finish() const;

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw Error(Fault::data, where_ + ": " + problem); }
  void note(std::string& problem, const char* text) {
    if (problem.empty()) problem = text;
  }
  bool value(Kind kind, int64_t whole = 0, double real = 0, const std::string* text = nullptr);
  // Place of the children of a list or an object.
  Place within(Kind kind);
  Place within_file(Kind kind);
  Place within_record(Kind kind);
  bool enter(Kind kind);
  bool leave();
  void take_record();

  const std::string& where_;
  const std::vector<RecordList>& lists_;
  const JsonCharacters& characters_;
  std::vector<bool> seen_;
  size_t list_ = 0;  // number of lists if the last key is none of theirs
  Key key_ = Key::other;
  std::string rle_key_;
  Place place_ = Place::outside;
  std::vector<Place> outer_;
  std::vector<double> polygon_;
  Record record_;
};

bool Events::key(std::string& name) {
  if (place_ == Place::file)
    list_ = static_cast<size_t>(
        std::find_if(lists_.begin(), lists_.end(), [&](const RecordList& list) { return list.key == name; }) -
        lists_.begin());
  if (place_ == Place::record) key_ = key_of(name);
  if (place_ == Place::rle) rle_key_ = name;
  return true;
}

bool Events::value(Kind kind, int64_t whole, double real, const std::string* text) {
  const bool is_number = kind == Kind::whole || kind == Kind::real;
  const auto set = [&](Value& value) {
    value.kind = kind;
    value.whole = whole;
    value.real = real;
    if (text) value.text = *text;
  };
  const auto add = [&](std::vector<double>& numbers, const char* problem) {
    if (is_number)
      numbers.push_back(real);
    else
      note(record_.segmentation_problem, problem);
  };
  const auto coordinate = [&](std::vector<double>& numbers, std::string& problem, const char* wrong) {
    if (is_number || kind == Kind::null)  // stands for NaN
      numbers.push_back(is_number ? real : std::nan(""));
    else
      note(problem, wrong);
  };
  switch (place_) {
    case Place::outside:
      fail("a single value, expected an object or a list");
    case Place::file:
      if (list_ < lists_.size()) fail(concat(lists_[list_].key, " is not a list"));
      break;
    case Place::list:
      fail(concat(lists_[list_].what, " at index ", record_.index, " is not an object"));
    case Place::record:
      if (key_ != Key::other) set(record_.at(key_));
      break;
    case Place::box:
      coordinate(record_.box, record_.box_problem, "bbox contains a non-number");
      break;
    case Place::polygon:
      coordinate(polygon_, record_.segmentation_problem, "segmentation has a polygon with a non-number");
      break;
    case Place::size:
      add(record_.size, "segmentation has a size with a non-number");
      break;
    case Place::runs:
      add(record_.runs, "segmentation has counts with a non-number");
      break;
    case Place::polygons:
      note(record_.segmentation_problem, "segmentation is a list that holds something other than lists of coordinates");
      break;
    case Place::rle:
      if (rle_key_ == "counts") set(record_.counts);
      break;
    case Place::other:
      break;
  }
  return true;
}

Place Events::within_file(Kind kind) {
  if (list_ == lists_.size()) return Place::other;
  if (kind != Kind::list) fail(concat(lists_[list_].key, " is not a list"));
  if (seen_[list_]) fail(concat("duplicate list '", lists_[list_].key, "'"));
  seen_[list_] = true;
  record_.what = lists_[list_].what;
  record_.index = 0;
  return Place::list;
}

Place Events::within_record(Kind kind) {
  if (key_ == Key::other) return Place::other;
  record_.at(key_).kind = kind;
  if (key_ == Key::box && kind == Kind::list) {
    record_.box.clear();
    return Place::box;
  }
  if (key_ != Key::segmentation) return Place::other;
  record_.polygons.clear();
  record_.counts.kind = Kind::absent;
  record_.size.clear();
  return kind == Kind::list ? Place::polygons : Place::rle;
}

Place Events::within(Kind kind) {
  switch (place_) {
    case Place::outside:
      list_ = 0;
      if ((kind == Kind::list) != lists_[0].key.empty())
        fail(kind == Kind::list ? "a list, expected an object that holds lists" : "an object, expected a list");
      return kind == Kind::list ? within_file(kind) : Place::file;
    case Place::file:
      return within_file(kind);
    case Place::list:
      if (kind != Kind::object) value(kind);
      record_.clear();
      return Place::record;
    case Place::record:
      return within_record(kind);
    case Place::polygons:
      polygon_.clear();
      if (kind == Kind::list) return Place::polygon;
      break;
    case Place::rle:
      if (rle_key_ == "size" && kind == Kind::list) return record_.size.clear(), Place::size;
      if (rle_key_ != "counts") return Place::other;
      record_.counts.kind = kind;
      record_.runs.clear();
      return kind == Kind::list ? Place::runs : Place::other;
    default:
      break;
  }
  value(kind);
  return Place::other;
}

bool Events::enter(Kind kind) {
  constexpr size_t kMaxDepth = 64;
  if (outer_.size() == kMaxDepth) fail(concat("JSON nested more than ", kMaxDepth, " deep"));
  const Place inner = within(kind);
  outer_.push_back(place_);
  place_ = inner;
  return true;
}

bool Events::leave() {
  if (place_ == Place::polygon) record_.polygons.emplace_back(polygon_.begin(), polygon_.end());
  if (place_ == Place::record) take_record();
  place_ = outer_.back();
  outer_.pop_back();
  return true;
}

void Events::take_record() {
  lists_[list_].take(record_);
  ++record_.index;
}

bool Events::parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
  constexpr int kOutOfRange = 406;
  fail(concat(error.id == kOutOfRange ? "a number that is too large" : "invalid JSON or UTF-8", " at byte ",
              characters_.bytes_at(position)));
}

void Events::finish() const {
  for (size_t i = 0; i < lists_.size(); ++i)
    if (!seen_[i]) fail(concat("no list '", lists_[i].key, "'"));
}

}  // namespace

NonFinite read_records(const TextSource& source, const std::vector<RecordList>& lists) {
  JsonCharacters characters(source);
  Events events(source.where, lists, characters);
  nlohmann::json::sax_parse(Characters(characters), Characters(), &events);
  events.finish();
  return {characters.non_finite(), characters.first_non_finite()};
}

}  // namespace dtrain::data::coco
