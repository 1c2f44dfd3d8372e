#include "dtrain/io/npz.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "libdtrain/io/element_types.h"
#include "libdtrain/io/zip.h"

namespace dtrain {
namespace {

constexpr std::string_view kNpySuffix = ".npy", kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = 65536;

// Parser of the subset of Python syntax used in headers.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, Fault fault) : text_(text), fault_(fault) {}

  NpyHeader whole() {
    NpyHeader header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!taken('}')) {
      const std::string_view key = quoted();
      expect(':');
      bool& has = key == "descr" ? has_type : key == "fortran_order" ? has_order : has_shape;
      if (has || (&has == &has_shape && key != "shape")) fail("descr, fortran_order and shape, once each");
      has = true;
      if (key == "descr") header.dtype = element_type();
      if (key == "fortran_order") header.fortran = truth();
      if (key == "shape") header.shape = shape();
      if (!taken(',') && next() != '}') fail("a comma or }");
    }
    skip_spaces();
    if (!has_type || !has_order || !has_shape || !text_.empty()) fail("descr, fortran_order and shape, once each");
    return header;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    throw Error(fault_, concat("header of an array: expected ", expected));
  }
  void skip_spaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  char next() {
    skip_spaces();
    return text_.empty() ? '\0' : text_[0];
  }
  bool taken(char c) {
    if (next() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool taken(std::string_view word) {
    skip_spaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(char c) {
    if (!taken(c)) fail(c == '{' ? "a dictionary in braces" : c == ':' ? "a colon" : "a tuple in parentheses");
  }

  std::string_view quoted() {
    const char quote = next();
    if (quote != '\'' && quote != '"') fail("a text in quotes");
    const size_t end = text_.find(quote, 1);
    if (end == text_.npos) fail("a text in quotes");
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  std::string element_type() {
    if (next() == '[') fail("a plain type, found records");
    const std::string_view type = quoted();
    if (type.find('O') != type.npos) fail("numbers, found pickled Python objects");
    const std::string_view plain = type.substr(std::min<size_t>(1, type.size()));
    const size_t bytes = bytes_of_dtype(dtype_of_numpy(plain));
    if (bytes > 0 && (type[0] == '<' || (type[0] == '|' && bytes == 1))) return std::string(plain);
    throw Error(fault_, concat("header of an array: type '", type.substr(0, 16),
                               "', expected <f2, <f4, <f8, |b1, or integers such as <i8 and |u1"));
  }

  bool truth() {
    if (taken("True")) return true;
    if (!taken("False")) fail("True or False");
    return false;
  }

  Shape shape() {
    expect('(');
    std::vector<int64_t> dims;
    while (!taken(')')) {
      skip_spaces();
      int64_t dim = -1;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) fail("integers as the shape");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      dims.push_back(dim);
      if (!taken(',') && next() != ')') fail("a comma between the numbers of the shape");
    }
    if (dims.size() > Shape::kMaxRank) fail("at most six dimensions");
    return checked(dims);
  }

  Shape checked(const std::vector<int64_t>& dims) const {
    Shape shape;
    try {
      for (const int64_t dim : dims) shape.append(dim);
    } catch (const Error&) {
      fail("a shape whose elements can be counted");
    }
    return shape;
  }

  std::string_view text_;
  Fault fault_;
};

// Converts column-major to row-major order.
std::string row_major(const std::string& columns, const Shape& shape, size_t size) {
  std::string rows(columns.size(), '\0');
  std::array<int64_t, Shape::kMaxRank> at{};
  for (size_t to = 0; to < rows.size(); to += size) {
    int64_t from = 0;
    for (int i = shape.rank(); i-- > 0;) from = from * shape[i] + at[static_cast<size_t>(i)];
    std::memcpy(rows.data() + to, columns.data() + static_cast<size_t>(from) * size, size);
    for (int i = shape.rank(); i-- > 0;) {
      if (++at[static_cast<size_t>(i)] < shape[i]) break;
      at[static_cast<size_t>(i)] = 0;
    }
  }
  return rows;
}

}  // namespace

NpyHeader parse_npy_header(std::string_view text, Fault fault) { return HeaderParser(text, fault).whole(); }

const std::string& NpzFile::path() const { return zip_->path(); }

NpzFile::NpzFile(const std::string& path, Fault fault)
    : zip_(std::make_shared<const ZipFile>(path, fault)), fault_(fault) {
  for (size_t i = 0; i < zip_->members().size(); ++i) {
    entries_.push_back(read_header(i));
    by_name_[entries_.back().name] = i;
  }
}

const NpzEntry* NpzFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

NpzEntry NpzFile::read_header(size_t index) const {
  const ZipMember& member = zip_->members()[index];
  NpzEntry entry{.name = member.name, .member = index};
  if (!entry.name.ends_with(kNpySuffix)) zip_->fail(member, "expected a name that ends with .npy");
  entry.name.resize(entry.name.size() - kNpySuffix.size());

  ZipFile::Reader reader(*zip_, member);
  char start[8];
  reader.read(start, sizeof start);
  if (std::string_view(start, kMagic.size()) != kMagic) zip_->fail(member, "not a NumPy array: wrong magic bytes");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) zip_->fail(member, "expected version 1.0, 2.0 or 3.0 of the format");
  uint32_t length = 0;
  reader.read(&length, version == 1 ? 2 : 4);
  if (length > kLongestHeader || length > reader.left())
    zip_->fail(member, concat("a header of ", length, " bytes is longer than ",
                              std::min<uint64_t>(kLongestHeader, reader.left())));
  std::string text(length, '\0');
  reader.read(text.data(), length);
  try {
    entry.array = parse_npy_header(text, fault_);
  } catch (const Error& error) {
    zip_->fail(member, error.what());
  }
  entry.data = member.size - reader.left();
  const uint64_t expected = static_cast<uint64_t>(entry.array.shape.count()) * entry.array.bytes_of_element();
  if (expected != reader.left())
    zip_->fail(member,
               concat(entry.array.dtype, " ", entry.array.shape, " takes ", expected, " bytes, found ", reader.left()));
  return entry;
}

std::vector<float> NpzFile::read(const NpzEntry& entry) const {
  return floats_of(dtype_of_numpy(entry.array.dtype), read_bytes(entry));
}

std::string NpzFile::read_bytes(const NpzEntry& entry) const {
  ZipFile::Reader reader(*zip_, zip_->members()[entry.member]);
  std::string header(static_cast<size_t>(entry.data), '\0');
  reader.read(header.data(), header.size());
  const size_t size = entry.array.bytes_of_element(), whole = static_cast<size_t>(entry.array.shape.count()) * size;
  constexpr size_t kBytes = 1 << 19;  // per read: memory grows with actual, not announced, data
  std::string elements;
  while (elements.size() < whole) {
    const size_t done = elements.size();
    elements.resize(std::min(whole, done + kBytes));
    reader.read(elements.data() + done, elements.size() - done);
  }
  return entry.array.fortran ? row_major(elements, entry.array.shape, size) : elements;
}

}  // namespace dtrain
