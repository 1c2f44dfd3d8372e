#include "libdtrain/io/pickle_scalars.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "libdtrain/io/pickle_opcodes.h"

namespace dtrain::pickle {
namespace {

constexpr size_t kLongestLine = 1 << 16;
constexpr uint64_t kLongestInteger = 64;  // bytes

template <class Number>
Number parsed(const std::string& text, const char* expected) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw Malformed{concat("expected ", expected)};
  return value;
}

Value integer(int64_t value) { return {.kind = Kind::integer, .integer = value}; }
Value boolean(bool value) { return {.kind = Kind::boolean, .integer = value}; }
Value short_text(std::string text) {
  const uint64_t size = text.size();
  return {.kind = Kind::text, .text = std::move(text), .size = size};
}

}  // namespace

void ScalarReader::need(uint64_t size) const {
  if (size > source_.left())
    throw Malformed{concat("truncated: ", size, " bytes are needed, ", source_.left(), " are left")};
}

std::string ScalarReader::line() {
  std::string text;
  for (char c; (c = number<char>()) != '\n'; text += c)
    if (text.size() >= kLongestLine) throw Malformed{"a line of text is too long"};
  return text;
}

uint64_t ScalarReader::decimal_index() { return parsed<uint64_t>(line(), "the number of a memo entry"); }

Value ScalarReader::text(Kind kind, uint64_t size) {
  need(size);
  Value value{.kind = kind, .begin = source_.at(), .size = size};
  if (size <= limits_.text) {
    value.text.resize(static_cast<size_t>(size));
    source_.read(value.text.data(), size);
  } else {
    source_.skip(size);
  }
  return value;
}

// A string literal of Python. PyTorch's and NumPy's names need no escape sequences.
Value ScalarReader::quoted() {
  const std::string text = line();
  if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"'))
    throw Malformed{"a text without quotes"};
  if (text.find('\\') != text.npos) throw Malformed{"a text with escape sequences, which are not supported"};
  return short_text(text.substr(1, text.size() - 2));
}

// Two's complement. Longer ones than 64 bits, such as PyTorch's magic number, are kept as bytes.
Value ScalarReader::integer_of_bytes(uint64_t size) {
  if (size > kLongestInteger) throw Malformed{concat("an integer of ", size, " bytes")};
  need(size);
  std::string bytes(static_cast<size_t>(size), '\0');
  source_.read(bytes.data(), size);
  if (size > sizeof(int64_t)) return short_text(std::move(bytes));
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
  int64_t value = negative ? -1 : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return integer(value);
}

Value ScalarReader::decimal() {
  std::string text = line();
  if (text == "00" || text == "01") return boolean(text == "01");
  if (text.ends_with('L')) text.pop_back();
  return integer(parsed<int64_t>(text, "an integer of 64 bits"));
}

Value ScalarReader::real_of_line() { return {.kind = Kind::real, .real = parsed<double>(line(), "a number")}; }

Value ScalarReader::real() {
  auto bytes = number<std::array<char, sizeof(double)>>();
  std::ranges::reverse(bytes);  // big-endian
  Value value{.kind = Kind::real};
  std::memcpy(&value.real, bytes.data(), sizeof value.real);
  return value;
}

std::optional<Value> ScalarReader::number_of(unsigned char op) {
  switch (op) {
    case NONE:
      return Value{};
    case NEWTRUE:
    case NEWFALSE:
      return boolean(op == NEWTRUE);
    case BININT:
      return integer(number<int32_t>());
    case BININT1:
      return integer(number<uint8_t>());
    case BININT2:
      return integer(number<uint16_t>());
    case INT:
    case LONG:
      return decimal();
    case LONG1:
      return integer_of_bytes(number<uint8_t>());
    case LONG4:
      return integer_of_bytes(number<uint32_t>());
    case FLOAT:
      return real_of_line();
    case BINFLOAT:
      return real();
    default:
      return std::nullopt;
  }
}

std::optional<Value> ScalarReader::text_of(unsigned char op) {
  switch (op) {
    case STRING:
      return quoted();
    case UNICODE:
      return short_text(line());
    case BINSTRING:
    case BINUNICODE:
      return text(Kind::text, number<uint32_t>());
    case SHORT_BINSTRING:
    case SHORT_BINUNICODE:
      return text(Kind::text, number<uint8_t>());
    case BINUNICODE8:
      return text(Kind::text, number<uint64_t>());
    case BINBYTES:
      return text(Kind::bytes, number<uint32_t>());
    case SHORT_BINBYTES:
      return text(Kind::bytes, number<uint8_t>());
    case BINBYTES8:
    case BYTEARRAY8:
      return text(Kind::bytes, number<uint64_t>());
    default:
      return std::nullopt;
  }
}

std::optional<Value> ScalarReader::value_of(unsigned char op) {
  std::optional<Value> value = number_of(op);
  return value ? value : text_of(op);
}

}  // namespace dtrain::pickle
