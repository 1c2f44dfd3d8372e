#include "dtrain/io/npz_output.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "libdtrain/io/element_types.h"

namespace dtrain {
namespace {

constexpr uint32_t kMemberMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint16_t kVersion = 20, kUtf8Name = 1 << 11, kStored = 0;
constexpr uint16_t kTime = 0, kDate = 1 << 5 | 1;  // 1980-01-01 00:00, the epoch of ZIP
constexpr uint16_t kNone = 0;
constexpr uint32_t kNoAttributes = 0;
constexpr uint64_t kLargest = std::numeric_limits<uint32_t>::max();
constexpr size_t kMostMembers = std::numeric_limits<uint16_t>::max(), kLongestName = 1000;
constexpr size_t kAlignment = 64;  // of the data after a header, as in NumPy

// Little-endian.
template <class... Numbers>
std::string bytes_of(Numbers... numbers) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return bytes;
}

// Python tuple syntax: (), (3,) and (3, 4).
std::string tuple_of(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.rank() == 1 ? ",)" : ")");
}

// Format version 1.0, space-padded up to the elements.
std::string npy_header(const SafetensorsEntry& array) {
  const std::string type = concat(bytes_of_dtype(array.dtype) == 1 ? "|" : "<", numpy_type(array.dtype));
  std::string text = concat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", tuple_of(array.shape), ", }");
  const std::string magic = std::string("\x93NUMPY") + '\1' + '\0';
  const size_t taken = magic.size() + sizeof(uint16_t) + text.size() + 1;
  text.append((kAlignment - taken % kAlignment) % kAlignment, ' ');
  text += '\n';
  return magic + bytes_of(static_cast<uint16_t>(text.size())) + text;
}

// zlib's length arguments have 32 bits.
uint32_t checksum(uint32_t crc, const void* data, uint64_t size) {
  return static_cast<uint32_t>(crc32(crc, static_cast<const Bytef*>(data), static_cast<uInt>(size)));
}

}  // namespace

void NpzOutput::add(const TensorSpec& array, const void* data) {
  add({array.name, safetensors_dtype(array.dtype), array.shape}, data);
}

void NpzOutput::add(const SafetensorsEntry& array, const void* data) {
  DT_CHECK(!numpy_type(array.dtype).empty(), "npz: array ", array.name, ": NumPy does not have the type ", array.dtype);
  DT_CHECK(!array.name.empty() && array.name.size() <= kLongestName && names_.insert(array.name).second,
           "npz: array \"", array.name, "\": expected another name of 1 to ", kLongestName, " bytes");
  const std::string name = array.name + ".npy", header = npy_header(array);
  const uint64_t elements = static_cast<uint64_t>(array.shape.count()) * bytes_of_dtype(array.dtype);
  const uint64_t size = header.size() + elements, offset = file_.size();
  DT_CHECK(elements <= kLargest && offset + size + directory_.size() + (1 << 16) <= kLargest &&
               names_.size() <= kMostMembers,
           "npz: ", file_.path(), ": with array ", array.name, " it would pass 4 GiB or ", kMostMembers,
           " arrays; safetensors hold more");
  const uint32_t crc = checksum(checksum(0, header.data(), header.size()), data, elements);
  const auto small_size = static_cast<uint32_t>(size);
  // Without the flag readers take other names than ASCII for code page 437.
  const bool is_ascii = std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  const uint16_t flags = is_ascii ? kNone : kUtf8Name;
  const std::string common = bytes_of(kVersion, flags, kStored, kTime, kDate, crc, small_size, small_size,
                                      static_cast<uint16_t>(name.size()), kNone);
  file_.write(bytes_of(kMemberMark) + common + name);
  file_.write(header);
  file_.write(data, elements);
  directory_ += bytes_of(kEntryMark, kVersion) + common +
                bytes_of(kNone, kNone, kNone, kNoAttributes, static_cast<uint32_t>(offset)) + name;
}

void NpzOutput::finish() {
  const auto members = static_cast<uint16_t>(names_.size());
  const auto offset = static_cast<uint32_t>(file_.size()), size = static_cast<uint32_t>(directory_.size());
  file_.write(directory_);
  file_.write(bytes_of(kEndMark, kNone, kNone, members, members, size, offset, kNone));
}

}  // namespace dtrain
