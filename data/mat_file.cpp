#include "data/mat_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

constexpr size_t kHeaderBytes = 128;
constexpr size_t kMaxUnpackedBytes = size_t{16} << 20;  // of all compressed elements
constexpr size_t kMaxNumbers = 64;                      // in a value; longer ones are not read

// Types of elements, and classes of matrices.
enum Type : uint32_t {
  kInt8 = 1,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kSingle,
  kDouble = 9,
  kInt64 = 12,
  kUint64,
  kMatrix,
  kCompressed,
  kUtf8,
  kUtf16
};
enum Class : uint32_t { kStruct = 2, kChar = 4, kFirstNumeric = 6, kLastNumeric = 15 };

struct Element {
  uint32_t type = 0;
  std::string_view data{};
};

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);  // little-endian, which the header states
  return value;
}

size_t padded(size_t size) { return (size + 7) / 8 * 8; }

// Bytes of a number; 0 for types that hold none.
size_t bytes_of_type(uint32_t type) {
  switch (type) {
    case kInt8:
    case kUint8:
    case kUtf8:
      return 1;
    case kInt16:
    case kUint16:
    case kUtf16:
      return 2;
    case kInt32:
    case kUint32:
    case kSingle:
      return 4;
    case kDouble:
    case kInt64:
    case kUint64:
      return 8;
    default:
      return 0;
  }
}

double number_of(const Element& element, size_t at) {
  switch (element.type) {
    case kInt8:
      return number_at<int8_t>(element.data, at);
    case kInt16:
      return number_at<int16_t>(element.data, at);
    case kUint16:
    case kUtf16:
      return number_at<uint16_t>(element.data, at);
    case kInt32:
      return number_at<int32_t>(element.data, at);
    case kUint32:
      return number_at<uint32_t>(element.data, at);
    case kSingle:
      return static_cast<double>(number_at<float>(element.data, at));
    case kDouble:
      return number_at<double>(element.data, at);
    case kInt64:
      return static_cast<double>(number_at<int64_t>(element.data, at));
    case kUint64:
      return static_cast<double>(number_at<uint64_t>(element.data, at));
    default:
      return number_at<uint8_t>(element.data, at);
  }
}

// zlib's stream, freed in any case.
struct Inflater {
  z_stream z{};
  Inflater() {
    if (const int status = inflateInit(&z); status != Z_OK)
      throw Error(Fault::resource, concat("zlib inflateInit failed with status ", status));
  }
  ~Inflater() { inflateEnd(&z); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

// Header of a matrix, and what follows it.
struct Matrix {
  uint32_t kind = 0;
  uint64_t elements = 0;
  std::string_view name{}, rest{};
};

class MatReader {
 public:
  MatReader(std::string_view bytes, const std::string& name, const std::string& variable)
      : bytes_(bytes), name_(name), variable_(variable) {}

  std::vector<std::vector<MatValue>> structs(std::span<const std::string> fields) {
    check_header();
    std::string_view rest = bytes_.substr(kHeaderBytes);
    while (!rest.empty()) {
      std::string unpacked;
      const Matrix matrix = matrix_of(variable_in(rest, unpacked));
      if (matrix.name == variable_) return structs_of(matrix, fields);
    }
    fail(concat("has no variable ", variable_));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(Fault::data, concat(name_, ": ", what)); }
  [[noreturn]] void fail_damaged(const char* what) const { fail(concat("damaged or truncated: ", what)); }

  void check_header() const {
    const char* expected = "; expected a MAT-file of version 5";
    if (bytes_.starts_with("MATLAB 7.3")) fail(concat("a MAT-file of version 7.3, which is HDF5", expected));
    if (bytes_.size() < kHeaderBytes || !bytes_.starts_with("MATLAB"))
      fail("no MAT-file of version 5: it has no header of one");
    const std::string_view order = bytes_.substr(kHeaderBytes - 2, 2);
    if (order == "MI") fail(concat("a big-endian MAT-file", expected, " in little-endian order"));
    if (order != "IM" || number_at<uint16_t>(bytes_, kHeaderBytes - 4) != 0x0100)
      fail(concat("a MAT-file of another version", expected));
  }

  // Takes the next element off `rest`.
  Element next(std::string_view& rest) const {
    if (rest.size() < 8) fail_damaged("an element ends before its tag");
    const auto first = number_at<uint32_t>(rest, 0);
    if (const uint32_t small = first >> 16; small != 0) {  // data of up to 4 bytes in the tag
      if (small > 4) fail_damaged("an element in short form has more than 4 bytes");
      const Element element{first & 0xffff, rest.substr(4, small)};
      rest.remove_prefix(8);
      return element;
    }
    const size_t size = number_at<uint32_t>(rest, 4);
    if (size > rest.size() - 8) fail_damaged("an element is longer than what holds it");
    const Element element{first, rest.substr(8, size)};
    rest.remove_prefix(std::min(rest.size(), 8 + (first == kCompressed ? size : padded(size))));
    return element;
  }

  Element next(std::string_view& rest, uint32_t type, const char* what) const {
    const Element element = next(rest);
    if (element.type != type) fail_damaged(what);
    return element;
  }

  // The next variable of the file, from `unpacked` if it is compressed.
  Element variable_in(std::string_view& rest, std::string& unpacked) {
    const Element element = next(rest);
    if (element.type != kCompressed) return element;
    unpacked = unpack(element.data);
    std::string_view inner = unpacked;
    return next(inner);
  }

  std::string unpack(std::string_view packed) {
    Inflater inflater;
    z_stream& z = inflater.z;
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    z.avail_in = static_cast<uInt>(packed.size());
    std::string out;
    for (int status = Z_OK; status != Z_STREAM_END;) {
      const size_t done = out.size();
      if (done == unpackable_) fail(concat("unpacks to more than ", kMaxUnpackedBytes >> 20, " MiB"));
      out.resize(std::min(std::max(size_t{64} << 10, 2 * done), unpackable_));
      z.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      z.avail_out = static_cast<uInt>(out.size() - done);
      status = inflate(&z, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw Error(Fault::resource, concat(name_, ": no memory to decompress"));
      if (status != Z_OK && status != Z_STREAM_END) fail_damaged("a compressed variable cannot be decompressed");
      out.resize(out.size() - z.avail_out);
    }
    unpackable_ -= out.size();
    return out;
  }

  Matrix matrix_of(const Element& element) const {
    if (element.type != kMatrix) fail_damaged("a value is no array");
    Matrix matrix{.rest = element.data};
    if (element.data.empty()) return matrix;  // an empty value
    const Element flags = next(matrix.rest, kUint32, "an array has no flags");
    if (flags.data.size() != 8) fail_damaged("an array has no flags");
    matrix.kind = number_at<uint32_t>(flags.data, 0) & 0xff;
    const Element sizes = next(matrix.rest, kInt32, "an array has no dimensions");
    matrix.elements = 1;
    for (size_t at = 0; at + 4 <= sizes.data.size(); at += 4) {
      matrix.elements *= number_at<uint32_t>(sizes.data, at);
      if (matrix.elements > UINT32_MAX) fail_damaged("the dimensions of an array are too large");
    }
    matrix.name = next(matrix.rest, kInt8, "an array has no name").data;
    return matrix;
  }

  std::vector<std::vector<MatValue>> structs_of(const Matrix& matrix, std::span<const std::string> fields) const {
    if (matrix.kind != kStruct) fail(concat("the variable ", variable_, " is no struct array"));
    std::string_view rest = matrix.rest;
    const std::vector<std::optional<size_t>> wanted = wanted_fields(rest, fields);
    if (matrix.elements * wanted.size() > rest.size() / 8) fail_damaged("it has fewer structs than it states");
    std::vector<std::vector<MatValue>> all(static_cast<size_t>(matrix.elements), std::vector<MatValue>(fields.size()));
    for (std::vector<MatValue>& values : all)
      for (const std::optional<size_t>& field : wanted) {
        const Element value = next(rest);
        if (field) values[*field] = value_of(matrix_of(value));
      }
    return all;
  }

  // For each field in the file its index in `fields`. Takes the names off `rest`.
  std::vector<std::optional<size_t>> wanted_fields(std::string_view& rest, std::span<const std::string> fields) const {
    const Element length = next(rest, kInt32, "a struct has no field names");
    const Element names = next(rest, kInt8, "a struct has no field names");
    const size_t size = length.data.size() == 4 ? number_at<uint32_t>(length.data, 0) : 0;
    if (size == 0 || names.data.size() % size != 0) fail_damaged("a struct has no field names");
    std::vector<std::optional<size_t>> wanted;
    std::vector<bool> found(fields.size());
    for (size_t at = 0; at < names.data.size(); at += size) {
      std::string_view name = names.data.substr(at, size);
      name = name.substr(0, name.find('\0'));
      const auto place = std::ranges::find(fields, name);
      wanted.push_back(place == fields.end() ? std::nullopt
                                             : std::optional(static_cast<size_t>(place - fields.begin())));
      if (wanted.back()) found[*wanted.back()] = true;
    }
    for (size_t i = 0; i < fields.size(); ++i)
      if (!found[i]) fail(concat("the struct array ", variable_, " has no field ", fields[i]));
    return wanted;
  }

  MatValue value_of(Matrix matrix) const {
    MatValue value;
    const bool text = matrix.kind == kChar, numeric = matrix.kind >= kFirstNumeric && matrix.kind <= kLastNumeric;
    if (!text && !numeric) return value;
    const Element data = next(matrix.rest);
    const size_t size = bytes_of_type(data.type);
    if (size == 0 || data.data.size() % size != 0) fail_damaged("the data of an array");
    if (text && size == 1) {
      value.text = data.data;
      return value;
    }
    if (data.data.size() / size > kMaxNumbers) return value;
    for (size_t at = 0; at < data.data.size(); at += size) value.numbers.push_back(number_of(data, at));
    if (!text) return value;
    for (const double letter : value.numbers)
      value.text += letter >= 0 && letter < 0x80 ? static_cast<char>(letter) : '?';
    value.numbers.clear();
    return value;
  }

  const std::string_view bytes_;
  const std::string &name_, &variable_;
  size_t unpackable_ = kMaxUnpackedBytes;  // what remains of them
};

}  // namespace

std::vector<std::vector<MatValue>> read_mat_structs(std::string_view bytes, const std::string& name,
                                                    const std::string& variable, std::span<const std::string> fields) {
  return MatReader(bytes, name, variable).structs(fields);
}

}  // namespace dtrain::data
