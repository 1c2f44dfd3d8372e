#include "dtrain/data/idx.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/gzip.h"

namespace dtrain::data {
namespace {

constexpr uint8_t kUnsignedBytes = 8, kMaxDimensions = 4;
constexpr uint64_t kMaxArrayBytes = uint64_t{4} << 30;
constexpr size_t kChunk = size_t{1} << 20;

// Sequential, decompressed bytes of a file.
class Source {
 public:
  explicit Source(const std::string& path) : file_(path) {
    std::array<uint8_t, 2> start{};
    file_.read_some(0, start.data(), start.size());
    if (start == std::array<uint8_t, 2>{0x1f, 0x8b}) unpacked_.emplace(file_);
  }

  bool gzip() const { return unpacked_.has_value(); }
  uint64_t position() const { return position_; }

  // Reads up to `size` bytes; fewer only at the end.
  size_t read(uint8_t* to, size_t size) {
    const size_t got = unpacked_ ? unpacked_->read(to, size) : file_.read_some(position_, to, size);
    position_ += got;
    if (unpacked_ && unpacked_->fault() != nullptr) fail(concat(unpacked_->fault(), " after byte ", position_));
    return got;
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(Fault::data, concat(file_.path(), ": ", what)); }

 private:
  InputFile file_;
  std::optional<GzipReader> unpacked_;
  uint64_t position_ = 0;
};

uint32_t read_size(Source& source) {
  std::array<uint8_t, 4> bytes{};
  if (source.read(bytes.data(), bytes.size()) < bytes.size())
    source.fail(concat("ends at byte ", source.position(), ", within the header of an IDX file"));
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void read_header(Source& source, IdxArray& array) {
  const uint32_t magic = read_size(source), dimensions = magic & 0xff;
  if (magic >> 8 != kUnsignedBytes || dimensions < 1 || dimensions > kMaxDimensions)
    source.fail(
        fmt::format("magic number 0x{:08x} at byte 0, expected 0x00000801 for labels or 0x00000803 for images: "
                    "not an IDX file of unsigned bytes",
                    magic));
  for (uint32_t i = 0; i < dimensions; ++i) array.shape.push_back(read_size(source));
}

// Product of the dimensions.
uint64_t stated_bytes(const Source& source, const IdxArray& array) {
  uint64_t bytes = 1;
  for (const uint32_t size : array.shape) {
    if (size > 0 && bytes > kMaxArrayBytes / size)
      source.fail(
          fmt::format("header at byte 4 states {} bytes, expected at most {}", shape_text(array), kMaxArrayBytes));
    bytes *= size;
  }
  return bytes;
}

void read_bytes(Source& source, IdxArray& array) {
  const uint64_t stated = stated_bytes(source, array), begin = source.position();
  while (array.bytes.size() < stated) {
    const size_t have = array.bytes.size();
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(stated - have, kChunk));
    array.bytes.resize(have + wanted);
    const size_t got = source.read(array.bytes.data() + have, wanted);
    if (got < wanted)
      source.fail(fmt::format("ends at byte {}, expected {} for {} bytes: truncated", source.position(), begin + stated,
                              shape_text(array)));
  }
  uint8_t next = 0;
  if (source.read(&next, 1) > 0)
    source.fail(fmt::format("goes on after byte {}, where {} bytes end", begin + stated, shape_text(array)));
}

}  // namespace

std::string shape_text(const IdxArray& array) { return fmt::format("{}", fmt::join(array.shape, " x ")); }

IdxArray read_idx(const std::string& path) {
  Source source(path);
  IdxArray array{.path = path, .gzip = source.gzip()};
  read_header(source, array);
  read_bytes(source, array);
  return array;
}

bool has_idx_name(const std::string& name) {
  static const std::regex kName("[^.].*[-.]idx[1-4]-ubyte(\\.gz)?");
  return std::regex_match(name, kName);
}

}  // namespace dtrain::data
