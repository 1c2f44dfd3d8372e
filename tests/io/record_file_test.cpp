// TFRecord framing: known bytes, round trips, and corruption.
#include "dtrain/io/record_file.h"

#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <random>

#include "libdtrain/io/crc32c.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string header_of(uint64_t length) {
  std::string header(12, '\0');
  std::memcpy(header.data(), &length, 8);
  const uint32_t crc = mask_crc32c(crc32c(&length, 8));
  std::memcpy(header.data() + 8, &crc, 4);
  return header;
}

// Result of a reader: records, and messages of corrupt ones, prefixed with "!".
std::vector<std::string> read_all(RecordReader& reader, int* rest_lost = nullptr) {
  std::vector<std::string> seen;
  for (;;) {
    try {
      const auto record = reader.next();
      if (!record) return seen;
      seen.push_back(text_of(record->bytes));
    } catch (const RecordError& error) {
      seen.push_back(std::string("!") + error.what());
      if (rest_lost) *rest_lost += error.rest_lost();
    }
  }
}

std::vector<std::string> read_all(const std::string& path, int* rest_lost = nullptr) {
  RecordReader reader(path);
  return read_all(reader, rest_lost);
}

void write_records(const std::string& path, const std::vector<std::string>& records,
                   Compression compression = Compression::none) {
  RecordWriter writer(path, compression);
  for (const std::string& record : records) writer.append(record);
  writer.finish();
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

std::vector<std::string> sample_records() {
  std::mt19937 random(7);
  std::vector<std::string> records = {"", "abc", std::string(3'000'000, 'x')};
  for (int i = 0; i < 300; ++i) {
    std::string record(random() % 9000, '\0');
    for (char& byte : record) byte = static_cast<char>(random());
    records.push_back(record);
  }
  return records;
}

TEST(RecordFile, KnownBytes) {
  const TempDirectory directory;
  write_records(directory / "a", {"", "abc"});
  EXPECT_EQ(read_file(directory / "a"),
            unhex("000000000000000029039807d8ea82a2") + unhex("0300000000000000b099490e") + "abc" + unhex("6e57f121"));
}

TEST(RecordFile, RoundTrips) {
  const TempDirectory directory;
  const auto records = sample_records();
  for (Compression compression : {Compression::none, Compression::gzip}) {
    const std::string path = directory / "records";
    write_records(path, records, compression);
    RecordReader reader(path);
    EXPECT_EQ(reader.compression(), compression);
    uint64_t offset = 0;
    for (size_t i = 0; i < records.size(); ++i) {
      const auto record = reader.next();
      ASSERT_TRUE(record) << i;
      ASSERT_EQ(text_of(record->bytes), records[i]) << i;
      ASSERT_EQ(record->index, i);
      ASSERT_EQ(record->offset, offset);
      offset += kRecordHeader + records[i].size() + kRecordFooter;
    }
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.next());
  }
}

TEST(RecordFile, RandomAccessWalksTheHeaders) {
  const TempDirectory directory;
  const auto records = sample_records();
  write_records(directory / "a", records);
  const RecordFile file(directory / "a");
  std::vector<std::pair<uint64_t, uint64_t>> index;
  for (uint64_t offset = 0; offset < file.size();) {
    const uint64_t length = file.length_at(offset, index.size());
    index.emplace_back(offset, length);
    offset += kRecordHeader + length + kRecordFooter;
  }
  ASSERT_EQ(index.size(), records.size());
  std::vector<std::byte> buffer;
  for (size_t i = records.size(); i-- > 0;)
    ASSERT_EQ(text_of(file.read_record_at(index[i].first, index[i].second, i, buffer)), records[i]);
  const auto read = [&](uint64_t offset, uint64_t length) {
    return message_of([&] { file.read_record_at(offset, length, 1, buffer); });
  };
  EXPECT_TRUE(contains(read(index[1].first, 4), "length 3, but the index says 4"));
  EXPECT_TRUE(contains(read(index[1].first + 1, 3), "corrupted header"));
  EXPECT_TRUE(contains(read(file.size(), 0), "truncated"));
  EXPECT_TRUE(contains(read(UINT64_MAX, UINT64_MAX), "truncated"));
}

TEST(RecordFile, EmptyFileIsAValidShard) {
  const TempDirectory directory;
  write_file(directory / "a", "");
  EXPECT_TRUE(read_all(directory / "a").empty());
  write_records(directory / "b", {}, Compression::gzip);
  EXPECT_TRUE(read_all(directory / "b").empty());
}

// A truncated file gives the complete records and one error, or a clean end between records.
TEST(RecordFile, CutAtEveryByte) {
  const TempDirectory directory;
  const std::string path = directory / "a";
  write_records(path, {"first", "second one"});
  const std::string whole = read_file(path);
  const size_t first = 12 + 5 + 4;
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    write_file(path, whole.substr(0, cut));
    int rest_lost = 0;
    const auto seen = read_all(path, &rest_lost);
    const size_t good = cut >= first;
    const bool clean = cut == 0 || cut == first;
    ASSERT_EQ(seen.size(), good + !clean) << "cut at " << cut;
    if (good) {
      ASSERT_EQ(seen[0], "first");
    }
    if (clean) continue;
    EXPECT_EQ(rest_lost, 1);
    const std::string where = path + ": record " + std::to_string(good) + " at byte " + std::to_string(good * first);
    EXPECT_TRUE(contains(seen.back(), where)) << seen.back();
    EXPECT_TRUE(contains(seen.back(), "truncated record")) << seen.back();
    const RecordFile file(path);
    std::vector<std::byte> buffer;
    EXPECT_THROW(file.read_record_at(good * first, good ? 10 : 5, good, buffer), RecordError);
  }
}

// Every flipped bit is detected. In a header it ends the file; in a body it costs one record.
TEST(RecordFile, EveryFlippedBit) {
  const TempDirectory directory;
  const std::string path = directory / "a";
  write_records(path, {"first", "second one", "third"});
  const std::string whole = read_file(path);
  const size_t begin = 21, end = begin + 12 + 10 + 4;  // of the second record
  for (size_t bit = 8 * begin; bit < 8 * end; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_file(path, damaged);
    int rest_lost = 0;
    const auto seen = read_all(path, &rest_lost);
    const bool header = bit / 8 < begin + 12;
    ASSERT_EQ(seen.size(), header ? 2u : 3u) << "bit " << bit;
    EXPECT_EQ(seen[0], "first");
    EXPECT_TRUE(contains(seen[1], path + ": record 1 at byte 21: ")) << seen[1];
    EXPECT_TRUE(contains(seen[1], header ? "corrupted header" : "corrupted body")) << seen[1];
    EXPECT_EQ(rest_lost, header);
    if (!header) {
      EXPECT_EQ(seen[2], "third");
    }
    const RecordFile file(path);
    std::vector<std::byte> buffer;
    EXPECT_THROW(file.read_record_at(begin, 10, 1, buffer), RecordError);
  }
}

// Huge lengths with valid checksums.
TEST(RecordFile, HugeLengthsAreRefusedBeforeMemoryIsTaken) {
  const TempDirectory directory;
  const std::string path = directory / "a";
  for (uint64_t length : {UINT64_MAX, UINT64_MAX - 15, uint64_t{1} << 62, uint64_t{1} << 40, uint64_t{100}}) {
    write_file(path, header_of(length) + "some bytes");
    const auto seen = read_all(path);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_TRUE(contains(seen[0], "truncated record")) << seen[0];
    EXPECT_TRUE(contains(message_of([&] { RecordFile(path).length_at(0, 0); }), "truncated record"));
  }
  write_records(path, {"0123456789"});
  RecordReader limited(path, 9);
  const auto seen = read_all(limited);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(contains(seen[0], "exceeds the limit of 9 bytes")) << seen[0];
}

TEST(RecordFile, GzipThatIsCutOrCorrupted) {
  const TempDirectory directory;
  const std::string path = directory / "a.gz";
  const auto records = sample_records();
  write_records(path, records, Compression::gzip);
  const std::string whole = read_file(path);
  for (size_t cut : {size_t{3}, size_t{10}, whole.size() / 2, whole.size() - 9, whole.size() - 1}) {
    write_file(path, whole.substr(0, cut));
    const auto seen = read_all(path);
    EXPECT_TRUE(contains(seen.back(), "truncated gzip stream")) << "cut at " << cut << ": " << seen.back();
    EXPECT_LE(seen.size(), records.size() + 1);
    for (size_t i = 0; i + 1 < seen.size(); ++i) ASSERT_EQ(seen[i], records[i]);
  }
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x10);
  write_file(path, damaged);
  EXPECT_EQ(read_all(path).back()[0], '!');
  EXPECT_TRUE(contains(message_of([&] { RecordFile file(path); }), "gzip-compressed"));
}

TEST(RecordFile, GzipOfSeveralMembersAndOfAHugeClaim) {
  const TempDirectory directory;
  write_records(directory / "a", {"one", "two"}, Compression::gzip);
  write_records(directory / "b", {"three"}, Compression::gzip);
  write_file(directory / "ab", read_file(directory / "a") + read_file(directory / "b"));
  EXPECT_EQ(read_all(directory / "ab"), (std::vector<std::string>{"one", "two", "three"}));

  AtomicFile file(directory / "claim");
  file.write(header_of(uint64_t{200} << 20) + "few bytes");
  file.commit();
  ASSERT_EQ(
      std::system(("gzip -c " + (directory / "claim").string() + " > " + (directory / "claim.gz").string()).c_str()),
      0);
  const auto seen = read_all(directory / "claim.gz");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(contains(seen[0], "truncated record")) << seen[0];
}

// The length 0x88b1f begins with gzip's magic bytes; its checksum distinguishes them.
TEST(RecordFile, PlainRecordThatBeginsLikeGzip) {
  const TempDirectory directory;
  write_records(directory / "a", {std::string(0x88b1f, 'q'), "next"});
  ASSERT_EQ(read_file(directory / "a").substr(0, 3), "\x1f\x8b\x08");
  RecordReader reader(directory / "a");
  EXPECT_EQ(reader.compression(), Compression::none);
  EXPECT_EQ(read_all(reader).size(), 2u);
}

TEST(RecordFile, WhatIsNotARecordFile) {
  const TempDirectory directory;
  write_file(directory / "text", "this is a text file, longer than a header");
  EXPECT_TRUE(contains(read_all(directory / "text")[0], "not a TFRecord"));
  EXPECT_TRUE(contains(message_of([&] { RecordReader reader(directory.path()); }), "is a directory"));
  EXPECT_TRUE(contains(message_of([&] { RecordReader reader(directory / "none"); }), "No such file"));
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(contains(message_of([&] { RecordReader reader(directory / "fifo"); }), "FIFO"));
}

TEST(RecordFile, UnfinishedWriterLeavesNothing) {
  const TempDirectory directory;
  {
    RecordWriter writer(directory / "a");
    writer.append("abc");
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace dtrain
