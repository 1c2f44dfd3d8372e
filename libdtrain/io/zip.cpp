#include "libdtrain/io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace dtrain {
namespace {

constexpr uint32_t kMemberMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kLargeEndMark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr size_t kMemberHeader = 30, kEntry = 46, kEnd = 22, kLargeEnd = 56, kLocator = 20;
constexpr uint32_t kIn64Bits = 0xffffffff;
constexpr uint16_t kEncrypted = 1, kStored = 0, kDeflated = 8, kLargeSizes = 1;
constexpr size_t kLongestComment = 0xffff, kLongestName = 1024;
constexpr uint64_t kMostMembers = 100'000, kLargestDirectory = 100'000'000;
constexpr uint64_t kMostPerByte = 1032;  // deflate's maximum ratio: 258 bytes per two bits
constexpr size_t kChunk = size_t{64} << 10;

// Little-endian.
template <class T>
T number_at(const std::string& bytes, size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint16_t u16(const std::string& bytes, size_t at) { return number_at<uint16_t>(bytes, at); }
uint32_t u32(const std::string& bytes, size_t at) { return number_at<uint32_t>(bytes, at); }
uint64_t u64(const std::string& bytes, size_t at) { return number_at<uint64_t>(bytes, at); }

std::string bytes_at(const InputFile& file, uint64_t offset, size_t size) {
  std::string bytes(size, '\0');
  file.read(offset, bytes.data(), size);
  return bytes;
}

bool printable(const std::string& name) {
  return std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

}  // namespace

void ZipFile::fail(const std::string& what) const { throw Error(fault_, concat(file_.path(), ": ", what)); }
void ZipFile::fail(const ZipMember& member, const std::string& what) const {
  fail(concat("member ", printable(member.name) ? member.name : "with an odd name", ": ", what));
}

ZipFile::ZipFile(const std::string& path, Fault fault) : file_(path, fault), fault_(fault) {
  const Directory directory = find_directory();
  read_directory(directory);
  std::ranges::sort(members_, {}, &ZipMember::header);
  std::set<std::string> names;
  for (size_t i = 0; i < members_.size(); ++i) {
    locate(members_[i], i + 1 < members_.size() ? members_[i + 1].header : directory.offset);
    if (!names.insert(members_[i].name).second) fail(members_[i], "a second one of this name");
  }
}

// The end record is last in the file, apart from a comment.
ZipFile::Directory ZipFile::find_directory() const {
  if (file_.size() < kEnd) fail("no ZIP archive: shorter than the end of one");
  const auto tail_size = static_cast<size_t>(std::min<uint64_t>(file_.size(), kEnd + kLongestComment));
  const uint64_t tail_begin = file_.size() - tail_size;
  const std::string tail = bytes_at(file_, tail_begin, tail_size);
  for (size_t at = tail_size - kEnd + 1; at-- > 0;) {
    if (u32(tail, at) != kEndMark || u16(tail, at + 20) != tail_size - at - kEnd) continue;
    if (u16(tail, at + 4) != 0 || u16(tail, at + 6) != 0) fail("an archive of several disks");
    Directory directory{u16(tail, at + 10), u32(tail, at + 16), u32(tail, at + 12)};
    uint64_t end = tail_begin + at;
    if (find_large_directory(end, directory)) end -= kLocator + kLargeEnd;
    if (directory.offset > end || directory.size > end - directory.offset)
      fail("the directory of members is beyond the end of the file");
    return directory;
  }
  fail("no ZIP archive, or a truncated one: no end record");
}

bool ZipFile::find_large_directory(uint64_t end_record, Directory& directory) const {
  if (end_record < kLocator + kLargeEnd) return false;
  const std::string locator = bytes_at(file_, end_record - kLocator, kLocator);
  if (u32(locator, 0) != kLocatorMark) return false;
  const uint64_t at = u64(locator, 8);
  if (at != end_record - kLocator - kLargeEnd) fail("the end record of ZIP64 is not where its locator says");
  const std::string record = bytes_at(file_, at, kLargeEnd);
  if (u32(record, 0) != kLargeEndMark) fail("no end record of ZIP64 where its locator says");
  directory = {u64(record, 32), u64(record, 48), u64(record, 40)};
  return true;
}

void ZipFile::read_directory(const Directory& directory) {
  if (directory.size > kLargestDirectory || directory.members > kMostMembers)
    fail(concat(directory.members, " members, listed in ", directory.size, " bytes: too many"));
  const std::string bytes = bytes_at(file_, directory.offset, static_cast<size_t>(directory.size));
  size_t at = 0;
  for (uint64_t i = 0; i < directory.members; ++i) members_.push_back(read_entry(bytes, at));
  if (at != bytes.size()) fail(concat("the directory has ", bytes.size() - at, " bytes after its last member"));
}

ZipMember ZipFile::read_entry(const std::string& bytes, size_t& at) const {
  if (bytes.size() - at < kEntry || u32(bytes, at) != kEntryMark) fail("the directory of members is damaged");
  const size_t name = u16(bytes, at + 28), extra = u16(bytes, at + 30), comment = u16(bytes, at + 32);
  if (bytes.size() - at - kEntry < name + extra + comment) fail("the directory of members is truncated");
  ZipMember member{.name = bytes.substr(at + kEntry, name),
                   .deflated = u16(bytes, at + 10) == kDeflated,
                   .crc32 = u32(bytes, at + 16),
                   .packed = u32(bytes, at + 20),
                   .size = u32(bytes, at + 24),
                   .header = u32(bytes, at + 42)};
  if (name == 0 || name > kLongestName || !printable(member.name)) fail(member, "no sound name");
  if ((u16(bytes, at + 8) & kEncrypted) != 0) fail(member, "encrypted");
  if (!member.deflated && u16(bytes, at + 10) != kStored)
    fail(member, concat("compression method ", u16(bytes, at + 10), ": expected 0 or 8, stored or deflated"));
  read_large_sizes(member, bytes.substr(at + kEntry + name, extra));
  if (member.deflated ? member.size / kMostPerByte > member.packed : member.size != member.packed)
    fail(member, concat(member.size, " bytes cannot be packed in ", member.packed));
  at += kEntry + name + extra + comment;
  return member;
}

// Sizes and offsets beyond 32 bits are in an extra field, in this order.
void ZipFile::read_large_sizes(ZipMember& member, const std::string& extra) const {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const size_t size = u16(extra, at + 2);
    if (size > extra.size() - at - 4) fail(member, "an extra field is truncated");
    if (u16(extra, at) == kLargeSizes) {
      size_t value = at + 4;
      for (uint64_t* field : {&member.size, &member.packed, &member.header}) {
        if (*field != kIn64Bits) continue;
        if (value + 8 > at + 4 + size) fail(member, "the 64-bit sizes are truncated");
        *field = u64(extra, value);
        value += 8;
      }
    }
    at += 4 + size;
  }
}

void ZipFile::locate(ZipMember& member, uint64_t end) const {
  if (member.header > end || end - member.header < kMemberHeader) fail(member, "it overlaps what follows");
  const std::string header = bytes_at(file_, member.header, kMemberHeader);
  const size_t name = u16(header, 26), extra = u16(header, 28);
  if (u32(header, 0) != kMemberMark) fail(member, "no header where the directory says");
  if (end - member.header - kMemberHeader < name + extra) fail(member, "its header overlaps what follows");
  const bool deflated = u16(header, 8) == kDeflated;
  if (name != member.name.size() || bytes_at(file_, member.header + kMemberHeader, name) != member.name ||
      deflated != member.deflated)
    fail(member, "its header and the directory differ");
  member.offset = member.header + kMemberHeader + name + extra;
  if (member.packed > end - member.offset) fail(member, "its bytes overlap what follows");
}

struct ZipFile::Reader::ZlibStream {
  z_stream z{};
  std::array<Bytef, kChunk> input;
  uint64_t taken = 0;     // compressed bytes read
  uint64_t unpacked = 0;  // uncompressed bytes written
  uLong crc = 0;
  bool ended = false;  // end of the deflate stream
};

ZipFile::Reader::Reader(const ZipFile& zip, const ZipMember& member)
    : zip_(zip), member_(member), stream_(std::make_unique<ZlibStream>()) {
  const int status = inflateInit2(&stream_->z, -MAX_WBITS);  // raw deflate
  if (status != Z_OK) throw Error(Fault::resource, concat("zlib inflateInit2 failed with status ", status));
}

ZipFile::Reader::~Reader() { inflateEnd(&stream_->z); }

uint64_t ZipFile::Reader::left() const { return member_.size - stream_->unpacked; }

void ZipFile::Reader::read(void* to, size_t size) {
  ZlibStream& s = *stream_;
  if (size > left()) zip_.fail(member_, concat("it has ", member_.size, " bytes, expected more"));
  auto* bytes = static_cast<Bytef*>(to);
  for (size_t done = 0; done < size;) {
    const size_t piece = std::min(size - done, kChunk);
    if (member_.deflated) {
      inflate(bytes + done, piece);
      if (s.z.avail_out > 0) zip_.fail(member_, "it unpacks to fewer bytes than stated");
    } else {
      zip_.file_.read(member_.offset + s.unpacked, bytes + done, piece);
    }
    s.crc = crc32(s.crc, bytes + done, static_cast<uInt>(piece));
    s.unpacked += piece;
    done += piece;
  }
  if (left() == 0) finish();
}

// Decompresses until the output is full or the stream ends.
void ZipFile::Reader::inflate(unsigned char* to, size_t size) {
  ZlibStream& s = *stream_;
  s.z.next_out = to;
  s.z.avail_out = static_cast<uInt>(size);
  while (s.z.avail_out > 0 && !s.ended) {
    if (s.z.avail_in == 0) {
      const auto piece = static_cast<size_t>(std::min<uint64_t>(member_.packed - s.taken, kChunk));
      zip_.file_.read(member_.offset + s.taken, s.input.data(), piece);
      s.z.next_in = s.input.data();
      s.z.avail_in = static_cast<uInt>(piece);
      s.taken += piece;
    }
    const int status = ::inflate(&s.z, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw Error(Fault::resource, concat(zip_.path(), ": no memory to unpack"));
    if (status != Z_OK && status != Z_STREAM_END) zip_.fail(member_, "its packed bytes are damaged or truncated");
    s.ended = status == Z_STREAM_END;
  }
}

void ZipFile::Reader::finish() {
  if (member_.deflated) {
    Bytef more = 0;
    inflate(&more, 1);
    if (stream_->z.avail_out == 0) zip_.fail(member_, "it unpacks to more bytes than stated");
    if (stream_->taken - stream_->z.avail_in != member_.packed)
      zip_.fail(member_, "it is packed in fewer bytes than stated");
  }
  if (stream_->crc != member_.crc32) zip_.fail(member_, "its checksum differs from the one stated");
}

}  // namespace dtrain
