#include "dtrain/io/record_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/gzip.h"

namespace dtrain {
namespace {

constexpr size_t kReadAhead = size_t{512} << 10;  // of a sequential reader: fits in L2
constexpr size_t kWriteBehind = size_t{1} << 20;  // write buffer
constexpr uint64_t kUnknown = UINT64_MAX;         // length of a compressed stream
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "record headers are read and written as they lie in memory");

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint32_t masked(const void* data, size_t size) { return mask_crc32c(crc32c(data, size)); }

// 1f 8b 08 may also begin a plain record; then its header checksum holds.
bool looks_gzip(const InputFile& file) {
  std::array<std::byte, kRecordHeader> head{};
  const size_t got = file.read_some(0, head.data(), head.size());
  const bool magic = head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b} && head[2] == std::byte{8};
  return magic && !(got == head.size() && record_length(head));
}

// Position of a record, for messages.
struct Place {
  const std::string& path;
  uint64_t offset, index;
  bool unpacked = false;  // offset in the decompressed stream of a gzip file

  [[noreturn]] void fail(const std::string& problem, const char* advice, bool rest_lost) const {
    throw RecordError(concat(path, ": record ", index, " at byte ", offset, unpacked ? " of the unpacked stream" : "",
                             ": ", problem, "; ", advice),
                      offset, index, rest_lost);
  }
  [[noreturn]] void truncated(const std::string& what) const {
    fail("truncated record, " + what, "the file was cut off: copy or make it again", true);
  }

  // Length from a 12-byte header with a valid checksum; `left` bytes of the file follow the header.
  uint64_t length(const std::byte* header, uint64_t left, uint64_t limit) const {
    const auto found = record_length(std::span<const std::byte, kRecordHeader>(header, kRecordHeader));
    if (!found) {
      if (offset == 0)
        fail("not a TFRecord (its first 12 bytes fail their checksum)",
             "gzip files are recognised; unpack other compressions, convert other formats", true);
      fail("corrupted header (its length fails its checksum)", "the rest of this file is lost: copy or make it again",
           true);
    }
    const uint64_t length = *found;
    if (left != kUnknown && (left < kRecordFooter || length > left - kRecordFooter))
      truncated(concat(length, " bytes and their checksum announced, ", left, " bytes left in the file"));
    if (length > limit)
      fail(concat("length ", length, " exceeds the limit of ", limit, " bytes"),
           "raise the limit if the record is meant to be that large", true);
    return length;
  }

  void check_body(const std::byte* body, uint64_t length) const {
    if (masked(body, length) != load<uint32_t>(body + length))
      fail(concat("corrupted body (its ", length, " bytes fail their checksum)"),
           "copy the file again, or skip bad records", false);
  }
};

}  // namespace

std::optional<uint64_t> record_length(std::span<const std::byte, kRecordHeader> header) {
  if (masked(header.data(), sizeof(uint64_t)) != load<uint32_t>(header.data() + sizeof(uint64_t))) return std::nullopt;
  return load<uint64_t>(header.data());
}

struct RecordReader::State {
  State(const std::string& path, uint64_t limit) : file(path), max_record_bytes(limit) {
    if (looks_gzip(file)) gzip = std::make_unique<GzipReader>(file);
  }

  // Makes `want` bytes from `begin` available, fewer at the end; returns their number. The buffer grows with received
  // data, never by an announced length alone.
  size_t fill(size_t want) {
    while (end - begin < want && !exhausted) {
      std::memmove(buffer.get(), buffer.get() + begin, end - begin);
      end -= begin;
      begin = 0;
      if (end == capacity) grow();
      const size_t room = capacity - end;
      const size_t got =
          gzip ? gzip->read(buffer.get() + end, room) : file.read_some(position, buffer.get() + end, room);
      position += got;
      end += got;
      exhausted = got < room;
    }
    return end - begin;
  }

  void grow() {
    auto larger = std::make_unique_for_overwrite<std::byte[]>(2 * capacity);
    std::memcpy(larger.get(), buffer.get(), end);
    buffer = std::move(larger);
    capacity *= 2;
  }

  [[noreturn]] void fail_short(const Place& place, const std::string& what) const {
    if (gzip && gzip->fault()) place.fail(gzip->fault(), "copy or make the file again", true);
    place.truncated(what);
  }

  std::optional<Record> next() {
    const Place place{file.path(), offset, index, gzip != nullptr};
    const size_t head = fill(kRecordHeader);
    if (head == 0 && !(gzip && gzip->fault())) return std::nullopt;
    if (head < kRecordHeader) fail_short(place, concat(head, " of the 12 bytes of its header"));
    const uint64_t left = gzip ? kUnknown : file.size() - std::min(file.size(), offset + kRecordHeader);
    const uint64_t length = place.length(buffer.get() + begin, left, max_record_bytes);
    const uint64_t whole = kRecordHeader + length + kRecordFooter;
    const size_t got = fill(whole);
    if (got < whole) fail_short(place, concat(length, " bytes announced, ", got - kRecordHeader, " bytes left"));
    const std::byte* body = buffer.get() + begin + kRecordHeader;
    begin += whole;
    offset += whole;
    ++index;
    place.check_body(body, length);
    return Record{{body, length}, place.offset, place.index};
  }

  InputFile file;
  std::unique_ptr<GzipReader> gzip;
  uint64_t max_record_bytes;
  size_t capacity = kReadAhead;
  std::unique_ptr<std::byte[]> buffer = std::make_unique_for_overwrite<std::byte[]>(kReadAhead);
  size_t begin = 0, end = 0;  // unread range of the buffer
  uint64_t position = 0;      // in the stream, at `end`
  uint64_t offset = 0;        // in the stream, at `begin`
  uint64_t index = 0;
  bool exhausted = false, rest_lost = false;
};

RecordReader::RecordReader(const std::string& path, uint64_t max_record_bytes)
    : state_(std::make_unique<State>(path, max_record_bytes)) {}
RecordReader::~RecordReader() = default;

std::optional<Record> RecordReader::next() {
  if (state_->rest_lost) return std::nullopt;
  try {
    return state_->next();
  } catch (const RecordError& error) {
    state_->rest_lost = error.rest_lost();
    throw;
  }
}

const std::string& RecordReader::path() const { return state_->file.path(); }
Compression RecordReader::compression() const { return state_->gzip ? Compression::gzip : Compression::none; }

RecordFile::RecordFile(const std::string& path, uint64_t max_record_bytes)
    : file_(path), max_record_bytes_(max_record_bytes) {
  if (looks_gzip(file_))
    throw Error(Fault::data, concat(path,
                                    ": is gzip-compressed, and single records can only be read from a plain file; "
                                    "unpack it: zcat FILE > NEW"));
}

uint64_t RecordFile::length_at(uint64_t offset, uint64_t index) const {
  const Place place{file_.path(), offset, index};
  std::array<std::byte, kRecordHeader> header;
  const size_t got = file_.read_some(offset, header.data(), header.size());
  if (got < kRecordHeader) place.truncated(concat(got, " of the 12 bytes of its header"));
  return place.length(header.data(), file_.size() - offset - kRecordHeader, max_record_bytes_);
}

uint32_t RecordFile::stated_crc_at(uint64_t offset, uint64_t length) const {
  uint32_t crc = 0;
  file_.read(offset + kRecordHeader + length, &crc, sizeof crc);
  return crc;
}

std::span<const std::byte> RecordFile::read_record_at(uint64_t offset, uint64_t length, uint64_t index,
                                                      std::vector<std::byte>& buffer) const {
  const Place place{file_.path(), offset, index};
  const uint64_t left = file_.size() - std::min(file_.size(), offset);
  if (left < kRecordHeader + kRecordFooter || length > left - kRecordHeader - kRecordFooter)
    place.truncated(concat("the index says ", length, " bytes, ", left, " bytes left in the file"));
  const uint64_t whole = kRecordHeader + length + kRecordFooter;
  if (buffer.size() < whole) buffer.resize(whole);
  const size_t got = file_.read_some(offset, buffer.data(), whole);
  if (got < whole) place.truncated(concat(got, " of ", whole, " bytes left: the file has shrunk"));
  const uint64_t found = place.length(buffer.data(), left - kRecordHeader, max_record_bytes_);
  if (found != length)
    place.fail(concat("length ", found, ", but the index says ", length), "the file has changed: make its index again",
               false);
  const std::byte* body = buffer.data() + kRecordHeader;
  place.check_body(body, length);
  return {body, length};
}

RecordFrame::RecordFrame(std::span<const std::byte> record) {
  const uint64_t length = record.size();
  const uint32_t length_crc = masked(&length, sizeof length), body_crc = masked(record.data(), record.size());
  std::memcpy(header_.data(), &length, sizeof length);
  std::memcpy(header_.data() + sizeof length, &length_crc, sizeof length_crc);
  std::memcpy(footer_.data(), &body_crc, sizeof body_crc);
}

struct RecordWriter::State {
  State(const std::string& path, Compression compression, FileSystem& files) : file(path, files) {
    if (compression == Compression::gzip) gzip = std::make_unique<GzipWriter>(file);
    pending.reserve(kWriteBehind);
  }

  void put(const void* data, size_t size) {
    if (pending.size() + size > kWriteBehind) flush();
    if (size > kWriteBehind)
      write_through(data, size);
    else
      pending.append(static_cast<const char*>(data), size);
  }

  void flush() {
    write_through(pending.data(), pending.size());
    pending.clear();
  }

  void write_through(const void* data, size_t size) {
    if (gzip)
      gzip->write(data, size);
    else
      file.write(data, size);
  }

  AtomicFile file;
  std::unique_ptr<GzipWriter> gzip;
  std::string pending;
  uint64_t records = 0, offset = 0;
};

RecordWriter::RecordWriter(const std::string& path, Compression compression, FileSystem& files)
    : state_(std::make_unique<State>(path, compression, files)) {}
RecordWriter::~RecordWriter() = default;

void RecordWriter::append(std::span<const std::byte> record) {
  const RecordFrame frame(record);
  state_->put(frame.header().data(), kRecordHeader);
  state_->put(record.data(), record.size());
  state_->put(frame.footer().data(), kRecordFooter);
  ++state_->records;
  state_->offset += kRecordHeader + record.size() + kRecordFooter;
}

void RecordWriter::finish() {
  state_->flush();
  if (state_->gzip) state_->gzip->finish();
  state_->file.commit();
}

uint64_t RecordWriter::bytes() const { return state_->file.output().size(); }
uint32_t RecordWriter::crc() const { return state_->file.output().crc(); }
uint64_t RecordWriter::records() const { return state_->records; }
uint64_t RecordWriter::offset() const { return state_->offset; }

}  // namespace dtrain
