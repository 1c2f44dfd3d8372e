#include "dtrain/data/example.h"

#include <algorithm>
#include <cstring>

#include "dtrain/core/error.h"
#include "libdtrain/io/utf8.h"

namespace dtrain::data {
namespace {

// Bounds the table for records with millions of empty features.
constexpr size_t kMaxFeatures = size_t{1} << 16;

enum class WireType : uint32_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

constexpr uint32_t field_tag(uint32_t field, WireType type) { return field << 3 | static_cast<uint32_t>(type); }

constexpr uint32_t kFirstLength = field_tag(1, WireType::length);

[[noreturn]] void malformed(const std::string& problem) {
  throw Error(Fault::data, "malformed tf.Example: " + problem);
}

// Iterates over the fields of one message.
class WireFields {
 public:
  explicit WireFields(std::string_view message) : at_(message.data()), end_(at_ + message.size()) {}

  // Advances to the next field; false at the end of the message.
  bool next() {
    if (at_ == end_) return false;
    const uint64_t tag = read_varint();
    if (tag > UINT32_MAX || tag < 8) malformed(concat("field tag ", tag));
    tag_ = static_cast<uint32_t>(tag);
    switch (static_cast<WireType>(tag_ & 7)) {
      case WireType::varint:
        varint_ = read_varint();
        break;
      case WireType::fixed64:
        bytes_ = take(8);
        break;
      case WireType::length:
        bytes_ = take(read_varint());
        break;
      case WireType::fixed32:
        bytes_ = take(4);
        break;
      default:
        malformed(concat("wire type ", tag_ & 7, " in field ", tag_ >> 3));
    }
    return true;
  }

  uint32_t tag() const { return tag_; }
  std::string_view bytes() const { return bytes_; }  // valid for a field that is not a varint
  uint64_t varint() const { return varint_; }

  bool at_end() const { return at_ == end_; }
  // Little-endian groups of seven bits, at most 64 bits.
  uint64_t read_varint() {
    if (at_ != end_ && static_cast<int8_t>(*at_) >= 0) [[likely]]
      return static_cast<uint8_t>(*at_++);
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) malformed("a number runs past the end of its message");
      const uint64_t byte = static_cast<uint8_t>(*at_++);
      if (shift == 63 && byte > 1) malformed("a number of more than 64 bits");
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

 private:
  std::string_view take(uint64_t size) {
    const auto left = static_cast<uint64_t>(end_ - at_);
    if (size > left) malformed(concat("a field of ", size, " bytes in a message with ", left, " bytes left"));
    const char* start = at_;
    at_ += size;
    return {start, size};
  }

  const char* at_;
  const char* end_;
  uint32_t tag_ = 0;
  std::string_view bytes_;
  uint64_t varint_ = 0;
};

// Calls visit(value) for each value of a list; throws for a malformed list.
template <class Visit>
void each_bytes(std::string_view list, Visit visit) {
  for (WireFields fields(list); fields.next();)
    if (fields.tag() == kFirstLength) visit(fields.bytes());
}

// Calls visit(first, count) for unaligned runs of floats.
template <class Visit>
void each_run_of_floats(std::string_view list, Visit visit) {
  for (WireFields fields(list); fields.next();) {
    if (fields.tag() != kFirstLength && fields.tag() != field_tag(1, WireType::fixed32)) continue;
    if (fields.bytes().size() % 4) malformed(concat("packed floats of ", fields.bytes().size(), " bytes"));
    visit(fields.bytes().data(), fields.bytes().size() / 4);
  }
}

template <class Visit>
void each_int64(std::string_view list, Visit visit) {
  for (WireFields fields(list); fields.next();) {
    if (fields.tag() == field_tag(1, WireType::varint)) visit(static_cast<int64_t>(fields.varint()));
    if (fields.tag() != kFirstLength) continue;
    for (WireFields packed(fields.bytes()); !packed.at_end();) visit(static_cast<int64_t>(packed.read_varint()));
  }
}

uint64_t count_values(FeatureKind kind, std::string_view list) {
  uint64_t count = 0;
  if (kind == FeatureKind::bytes) each_bytes(list, [&](std::string_view) { ++count; });
  if (kind == FeatureKind::float32) each_run_of_floats(list, [&](const char*, size_t run) { count += run; });
  if (kind == FeatureKind::int64) each_int64(list, [&](int64_t) { ++count; });
  return count;
}

void parse_feature(std::string_view message, Example::Entry& entry) {
  for (WireFields fields(message); fields.next();) {
    const uint32_t field = fields.tag() >> 3;
    if (fields.tag() != field_tag(field, WireType::length) || field < 1 || field > 3) continue;
    if (entry.feature.kind != FeatureKind::unset) malformed("a feature with two value lists");
    entry.feature = {static_cast<FeatureKind>(field), 0, fields.bytes()};
  }
}

Example::Entry parse_entry(std::string_view message) {
  Example::Entry entry;
  for (WireFields fields(message); fields.next();) {
    if (fields.tag() == kFirstLength) {
      entry.key = fields.bytes();
      if (!is_utf8(entry.key)) malformed("a feature name that is not UTF-8");
    }
    if (fields.tag() == field_tag(2, WireType::length)) parse_feature(fields.bytes(), entry);
  }
  entry.feature.count = count_values(entry.feature.kind, entry.feature.list);
  return entry;
}

void require_kind(FeatureKind found, FeatureKind expected) {
  if (found != expected)
    throw Error(Fault::data, concat("holds ", name_of(found), " values, expected ", name_of(expected)));
}

}  // namespace

const char* name_of(FeatureKind kind) {
  constexpr const char* kNames[] = {"unset", "bytes", "float", "int64"};
  return kNames[static_cast<size_t>(kind)];
}

void Feature::read(std::vector<std::string_view>& values) const {
  require_kind(kind, FeatureKind::bytes);
  values.clear();
  values.reserve(count);
  each_bytes(list, [&](std::string_view value) { values.push_back(value); });
}

void Feature::read(std::vector<float>& values) const {
  require_kind(kind, FeatureKind::float32);
  values.resize(count);
  float* out = values.data();
  each_run_of_floats(list, [&](const char* first, size_t run) {
    if (run) std::memcpy(out, first, 4 * run);
    out += run;
  });
}

void Feature::read(std::vector<int64_t>& values) const {
  require_kind(kind, FeatureKind::int64);
  values.clear();
  values.reserve(count);
  each_int64(list, [&](int64_t value) { values.push_back(value); });
}

void Example::parse(std::span<const std::byte> record) {
  entries_.clear();
  for (WireFields fields({reinterpret_cast<const char*>(record.data()), record.size()}); fields.next();) {
    if (fields.tag() == field_tag(2, WireType::length))
      throw Error(Fault::data, "is a tf.SequenceExample (it has feature_lists), expected a tf.Example");
    if (fields.tag() != kFirstLength) continue;
    for (WireFields features(fields.bytes()); features.next();) {
      if (features.tag() != kFirstLength) continue;
      if (entries_.size() == kMaxFeatures) malformed(concat("more than ", kMaxFeatures, " features"));
      entries_.push_back(parse_entry(features.bytes()));
    }
  }
}

const Feature* Example::find(std::string_view key) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& e) { return e.key == key; });
  return found == entries_.rend() ? nullptr : &found->feature;
}

const Feature& Example::single(std::string_view key, FeatureKind kind) const {
  const Feature* feature = find(key);
  const auto fail = [&](const std::string& problem) { throw Error(Fault::data, concat("feature ", key, problem)); };
  if (!feature) fail(" is missing");
  if (feature->kind == FeatureKind::unset) fail(" is there, but has no value list");
  if (feature->kind != kind) fail(concat(" holds ", name_of(feature->kind), " values, expected ", name_of(kind)));
  if (feature->count != 1) fail(concat(" holds ", feature->count, " values, expected 1"));
  return *feature;
}

std::string_view Example::bytes(std::string_view key) const {
  std::string_view found;
  each_bytes(single(key, FeatureKind::bytes).list, [&](std::string_view value) { found = value; });
  return found;
}

int64_t Example::int64(std::string_view key) const {
  int64_t found = 0;
  each_int64(single(key, FeatureKind::int64).list, [&](int64_t value) { found = value; });
  return found;
}

void Example::floats(std::string_view key, std::vector<float>& values) const {
  values.clear();
  const Feature* feature = find(key);
  if (!feature || feature->kind == FeatureKind::unset) return;
  if (feature->kind != FeatureKind::float32)
    throw Error(Fault::data, concat("feature ", key, " holds ", name_of(feature->kind), " values, expected float"));
  feature->read(values);
}

}  // namespace dtrain::data
