#include "libdtrain/io/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "libdtrain/io/element_types.h"

namespace dtrain {
namespace {

// SAX state machine of the only valid structure; fails at the first event that deviates.
class HeaderReader {
 public:
  explicit HeaderReader(std::string where) : where_(std::move(where)) {}

  SafetensorsHeader take() { return std::move(header_); }
  const std::string& problem() const { return problem_; }

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool number_float(double, const std::string& text) { return unexpected("the number " + text); }
  bool number_integer(int64_t value) { return unexpected("the negative number " + std::to_string(value)); }
  bool binary(nlohmann::json::binary_t&) { return unexpected("binary data"); }

  bool number_unsigned(uint64_t value) {
    if (state_ == State::shape) return append_extent(value);
    if (state_ != State::offsets) return unexpected("the number " + std::to_string(value));
    if (offsets_ == 2) return fail("data_offsets with more than two numbers");
    (offsets_++ == 0 ? begin_ : end_) = value;
    return true;
  }

  bool string(std::string& value) {
    if (state_ == State::metadata) {
      header_.metadata[key_] = value;
      return true;
    }
    if (state_ != State::tensor || key_ != "dtype") return unexpected("a string");
    tensor_.dtype = value;
    return true;
  }

  bool start_object(size_t) {
    if (state_ == State::start) return enter(State::top);
    if (state_ != State::top) return unexpected("an object");
    if (key_ == "__metadata__") return enter(State::metadata);
    tensor_ = {};
    tensor_.name = key_;
    tensor_keys_.clear();
    offsets_ = 0;
    return enter(State::tensor);
  }

  bool key(std::string& name) {
    key_ = name;
    if (state_ == State::top && !names_.insert(name).second) return fail("duplicate tensor \"" + name + "\"");
    if (state_ == State::metadata && header_.metadata.contains(name))
      return fail("duplicate metadata \"" + name + "\"");
    if (state_ == State::tensor) {
      if (name != "dtype" && name != "shape" && name != "data_offsets") return fail("unknown key \"" + name + "\"");
      if (!tensor_keys_.insert(name).second) return fail("duplicate key \"" + name + "\"");
    }
    return true;
  }

  bool end_object() {
    if (state_ == State::top) return enter(State::end);
    const bool complete = state_ != State::tensor || finish_tensor();
    state_ = State::top;
    return complete;
  }

  bool start_array(size_t) {
    if (state_ == State::tensor && key_ == "shape") return enter(State::shape);
    if (state_ == State::tensor && key_ == "data_offsets") return enter(State::offsets);
    return unexpected("an array");
  }

  bool end_array() { return enter(State::tensor); }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail("invalid JSON or UTF-8 at byte " + std::to_string(position));
  }

 private:
  enum class State { start, top, metadata, tensor, shape, offsets, end };

  bool enter(State state) {
    state_ = state;
    return true;
  }

  bool fail(const std::string& what) {
    const bool inside = state_ == State::tensor || state_ == State::shape || state_ == State::offsets;
    problem_ = where_ + (inside ? "tensor \"" + tensor_.name + "\": " : "") + what;
    return false;
  }

  bool unexpected(const std::string& what) {
    return fail("unexpected " + what + (key_.empty() ? "" : " at \"" + key_ + "\""));
  }

  bool append_extent(uint64_t extent) {
    if (tensor_.shape.rank() == Shape::kMaxRank) return fail(concat("more than ", Shape::kMaxRank, " dimensions"));
    uint64_t count = 0;
    if (__builtin_mul_overflow(extent, static_cast<uint64_t>(tensor_.shape.count()), &count) ||
        extent > Shape::kMaxCount || count > Shape::kMaxCount)
      return fail(concat("extent ", extent, " is too large: more than ", Shape::kMaxCount, " elements"));
    tensor_.shape.append(static_cast<int64_t>(extent));
    return true;
  }

  bool finish_tensor() {
    if (tensor_keys_.size() != 3 || offsets_ != 2) return fail("needs dtype, shape and two data_offsets");
    if (begin_ > end_) return fail(concat("data_offsets [", begin_, ", ", end_, "] run backwards"));
    uint64_t expected = bytes_of_dtype(tensor_.dtype);
    if (expected == 0) return fail("unknown dtype \"" + tensor_.dtype + "\"");
    bool overflow = false;
    for (int i = 0; i < tensor_.shape.rank(); ++i)
      overflow |= __builtin_mul_overflow(expected, static_cast<uint64_t>(tensor_.shape[i]), &expected);
    if (overflow || expected != end_ - begin_)
      return fail(concat(tensor_.dtype, " ", tensor_.shape, " does not take the ", end_ - begin_,
                         " bytes of its data_offsets"));
    tensor_.offset = begin_;
    tensor_.bytes = end_ - begin_;
    header_.entries.push_back(tensor_);
    return true;
  }

  std::string where_, problem_;
  SafetensorsHeader header_;
  State state_ = State::start;
  std::set<std::string> names_, tensor_keys_;
  std::string key_;
  SafetensorsEntry tensor_;
  uint64_t begin_ = 0, end_ = 0;
  int offsets_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path, Fault fault) {
  HeaderReader reader(path + ": safetensors header: ");
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) throw Error(fault, reader.problem());
  return reader.take();
}

}  // namespace dtrain
