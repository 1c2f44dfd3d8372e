#include "data/tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "dtrain/core/error.h"
#include "libdtrain/io/foreign_file.h"

namespace dtrain::data {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxNameBytes = uint64_t{1} << 20;  // of an extended header

struct Header {
  std::array<char, kBlock> bytes{};

  // Text up to the first NUL.
  std::string_view text(size_t offset, size_t size) const {
    const std::string_view field(bytes.data() + offset, size);
    return field.substr(0, field.find('\0'));
  }
  // Octal digits between blanks, or GNU's big-endian number if the first bit is set.
  std::optional<uint64_t> number(size_t offset, size_t size) const {
    uint64_t value = 0;
    if (bytes[offset] & 0x80) {
      for (size_t i = offset + 1; i < offset + size; ++i) {
        if (value >> 56 != 0) return std::nullopt;
        value = value << 8 | static_cast<uint8_t>(bytes[i]);
      }
      return value;
    }
    std::string_view digits = text(offset, size);
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    digits = digits.substr(0, digits.find(' '));
    for (const char digit : digits) {
      if (digit < '0' || digit > '7') return std::nullopt;
      value = value << 3 | static_cast<uint64_t>(digit - '0');  // twelve digits at most: no overflow
    }
    return digits.empty() ? std::nullopt : std::optional(value);
  }

  bool is_zero() const {
    return std::ranges::all_of(bytes, [](char byte) { return byte == 0; });
  }
  // Header checksum: sum of all bytes, with blanks for the checksum field.
  bool sum_is_right() const {
    uint64_t sum = 8 * ' ';
    for (size_t i = 0; i < bytes.size(); ++i)
      if (i < 148 || i >= 156) sum += static_cast<uint8_t>(bytes[i]);
    return number(148, 8) == sum;
  }
  char type() const { return bytes[156]; }
  std::string name() const {
    const std::string_view prefix = text(257, 6) == "ustar" ? text(345, 155) : "";  // GNU's own form has none
    return prefix.empty() ? std::string(text(0, 100)) : fmt::format("{}/{}", prefix, text(0, 100));
  }
};

// Reads exactly `size` bytes at `offset`.
using ReadBytes = std::function<void(uint64_t offset, void* to, size_t size)>;

class TarReader {
 public:
  TarReader(ReadBytes read, uint64_t begin, uint64_t size, const std::string& name)
      : read_(std::move(read)), archive_(name), at_(begin), end_(begin + size) {}

  std::vector<TarMember> members() {
    refuse_foreign();
    Header header;
    while (read_header(header)) take(header);
    return std::move(members_);
  }

  ReadableTar readable_members() {
    skips_others_ = true;
    ReadableTar found;
    try {
      found.members = members();
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      found.fault = error.what();
      found.members = std::move(members_);
    }
    found.links = links_;
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Fault::data, concat(archive_, ": member at byte ", at_, ": ", what));
  }

  void refuse_foreign() const {
    std::string head(static_cast<size_t>(std::min<uint64_t>(end_ - at_, kBlock)), '\0');
    read_(at_, head.data(), head.size());
    // gzip and other compressed archives have a separate message.
    if (const std::string kind = foreign_content(head); !kind.empty() && !head.starts_with("\x1f\x8b"))
      throw Error(Fault::data, concat(archive_, ": not a tar archive but ", kind));
  }

  // Returns false at the end of the archive.
  bool read_header(Header& header) {
    if (end_ - at_ < kBlock) fail("the archive ends before its end mark: truncated");
    read_(at_, header.bytes.data(), kBlock);
    if (header.is_zero()) return false;
    if (static_cast<uint8_t>(header.bytes[0]) == 0x1f && static_cast<uint8_t>(header.bytes[1]) == 0x8b)
      fail("packed by gzip; unpack it with gunzip first, for a packed archive can only be read from its beginning");
    if (!header.sum_is_right()) fail("the checksum of its header is wrong: damaged, or not a tar archive");
    return true;
  }

  void take(const Header& header) {
    const std::optional<uint64_t> stated = header.number(124, 12);
    if (!stated) fail("its header has no size");
    const uint64_t size = size_.value_or(*stated), begin = at_ + kBlock, room = end_ - begin;
    if (size > room)
      fail(fmt::format("'{}' of {} bytes, but the archive ends {} bytes after its header: truncated", header.name(),
                       size, room));
    take(header, begin, size);
    at_ = begin + std::min((size + kBlock - 1) / kBlock * kBlock, room);
  }

  void take(const Header& header, uint64_t begin, uint64_t size) {
    switch (header.type()) {
      case 'L':  // GNU's long name of the next member
        name_ = text_at(begin, size);
        name_ = name_.substr(0, name_.find('\0'));
        return;
      case 'x':  // POSIX's attributes of the next member
        take_attributes(text_at(begin, size));
        return;
      case 'g':
        return;
      case '5':
        break;
      case '0':
      case '7':
      case '\0':
        members_.push_back({name_.empty() ? header.name() : name_, begin, size});
        break;
      default:
        if (!skips_others_)
          fail(fmt::format("'{}' is of type '{}', expected a regular file or a folder", header.name(), header.type()));
        links_ += header.type() == '1' || header.type() == '2';
    }
    name_.clear();
    size_.reset();
  }

  std::string text_at(uint64_t begin, uint64_t size) const {
    if (size > kMaxNameBytes) fail(fmt::format("an extended header of {} bytes", size));
    std::string text(static_cast<size_t>(size), '\0');
    read_(begin, text.data(), text.size());
    return text;
  }

  // Parses lines "<length of the line> <key>=<value>\n".
  void take_attributes(std::string_view lines) {
    while (!lines.empty()) {
      size_t length = 0, digits = 0;
      for (; digits < lines.size() && digits < 8 && lines[digits] >= '0' && lines[digits] <= '9'; ++digits)
        length = 10 * length + static_cast<size_t>(lines[digits] - '0');
      if (length <= digits + 1 || length > lines.size()) fail("its extended header is damaged");
      const std::string_view line = lines.substr(digits + 1, length - digits - 2);
      if (line.starts_with("path=")) name_ = line.substr(5);
      if (line.starts_with("size=")) size_ = size_in(line.substr(5));
      lines.remove_prefix(length);
    }
  }

  uint64_t size_in(std::string_view digits) const {
    uint64_t value = 0;
    if (digits.empty() || digits.size() > 18) fail("its extended header is damaged");
    for (const char digit : digits) {
      if (digit < '0' || digit > '9') fail("its extended header is damaged");
      value = 10 * value + static_cast<uint64_t>(digit - '0');
    }
    return value;
  }

  const ReadBytes read_;
  const std::string& archive_;
  bool skips_others_ = false;  // links and devices
  uint64_t links_ = 0;
  uint64_t at_, end_;  // of the next header, of the archive
  std::string name_;   // from an extended header, for the next member
  std::optional<uint64_t> size_;
  std::vector<TarMember> members_;
};

}  // namespace

std::vector<TarMember> tar_members(const InputFile& file, uint64_t begin, uint64_t size, const std::string& name) {
  const auto read = [&](uint64_t offset, void* to, size_t bytes) { file.read(offset, to, bytes); };
  return TarReader(read, begin, size, name).members();
}

std::vector<TarMember> tar_members(const InputFile& file) { return tar_members(file, 0, file.size(), file.path()); }

ReadableTar readable_tar_members(const InputFile& file) {
  const auto read = [&](uint64_t offset, void* to, size_t bytes) { file.read(offset, to, bytes); };
  return TarReader(read, 0, file.size(), file.path()).readable_members();
}

std::vector<TarMember> tar_members(std::string_view archive, const std::string& name) {
  const auto read = [&](uint64_t offset, void* to, size_t bytes) {
    std::memcpy(to, archive.data() + offset, bytes);  // the reader asks for bytes within the archive only
  };
  return TarReader(read, 0, archive.size(), name).members();
}

}  // namespace dtrain::data
