// Decompressed copies of gzip files: sharing by content, limits, clean-up.
#include "data/unpacked_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "dtrain/data/record_index.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/file_lock.h"
#include "libdtrain/io/gzip.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

class UnpackedFile : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string folder() const { return (directory_ / "cache/unpacked").string(); }
  CacheOptions cache() const { return {.directory = path("cache")}; }
  std::string copy_of(const std::string& name) const { return plain_record_file(path(name), cache()); }

  void write(const std::string& name, const std::vector<std::string>& records) const {
    RecordWriter writer(path(name), Compression::gzip);
    for (const std::string& record : records) writer.append(record);
    writer.finish();
  }
  // Names in the folder of copies with the suffix `end`.
  std::vector<std::string> kept(const std::string& end) const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder(), none))
      if (const std::string name = entry.path().filename(); name.ends_with(end)) names.push_back(name);
    return names;
  }
  void expect_no_copy() const {
    EXPECT_TRUE(kept(".tfrecord").empty());
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder(), none))
      EXPECT_FALSE(is_temporary_name(entry.path().filename().native())) << entry.path();
  }

 private:
  TempDirectory directory_;
};

const std::vector<std::string> kRecords = {"first", "", std::string(100'000, 'x'), "last"};

void expect_reads(const std::string& copy, const std::vector<std::string>& records) {
  const RecordFile file(copy);
  const RecordIndex index = RecordIndex::open(file, "");
  ASSERT_EQ(index.size(), records.size());
  std::vector<std::byte> buffer;
  for (uint64_t i = 0; i < records.size(); ++i) {
    const auto bytes = file.read_record_at(index.offset(i), index.length(i), i, buffer);
    EXPECT_TRUE(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == records[i]) << i;
  }
}

// Sets the access time back.
void age(const std::string& file, int64_t days) {
  struct stat info;
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  const timespec times[] = {{::time(nullptr) - days * 24 * 60 * 60, 0}, info.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
}

TEST_F(UnpackedFile, EqualFilesShareACopy) {
  write("shard.gz", kRecords);
  const std::string copy = copy_of("shard.gz");
  expect_reads(copy, kRecords);
  struct stat before, after;
  ::stat(copy.c_str(), &before);
  fs::last_write_time(path("shard.gz"), fs::last_write_time(path("shard.gz")) + std::chrono::seconds(1));
  EXPECT_EQ(copy_of("shard.gz"), copy) << "touched";
  fs::copy(path("shard.gz"), path("other.gz"));
  EXPECT_EQ(copy_of("other.gz"), copy);
  ::stat(copy.c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec) << "its index would be stale";
  EXPECT_EQ(kept(".tfrecord").size(), 1u);

  write("shard.gz", {"changed"});
  EXPECT_NE(copy_of("shard.gz"), copy);
  expect_reads(copy_of("shard.gz"), {"changed"});
}

TEST_F(UnpackedFile, PlainFilesAreNotCopied) {
  RecordWriter writer(path("plain"));
  writer.finish();
  EXPECT_EQ(plain_record_file(path("plain"), {}), path("plain"));
}

TEST_F(UnpackedFile, IsMadeByOneProcess) {
  write("shard.gz", kRecords);
  const std::string copy = copy_of("shard.gz");
  const std::string lock = copy.substr(0, copy.rfind('.')) + ".lock";
  fs::remove(copy);
  std::optional<FileLock> other(lock);  // simulates another process
  std::atomic<int> asked = 0;
  CacheOptions options = cache();
  options.stop = [&] { return ++asked > 3; };
  expect_error([&] { plain_record_file(path("shard.gz"), options); }, Fault::resource,
               concat("locked by process ", ::getpid(), ", and a stop was requested"));
  expect_no_copy();

  options.stop = [&] { return ++asked, false; };
  asked = 0;
  std::thread waiting([&] { EXPECT_EQ(plain_record_file(path("shard.gz"), options), copy); });
  while (asked < 3) std::this_thread::yield();
  dtrain::write_file(copy, "made by the other one");
  other.reset();
  waiting.join();
  EXPECT_EQ(read_file(copy), "made by the other one");
}

TEST_F(UnpackedFile, ConcurrentRequests) {
  write("shard.gz", kRecords);
  {
    std::vector<std::jthread> ranks;
    for (int i = 0; i < 8; ++i) ranks.emplace_back([&] { expect_reads(copy_of("shard.gz"), kRecords); });
  }
  EXPECT_EQ(kept(".tfrecord").size(), 1u);
}

// A stream of zeros, a thousand times longer than the file.
TEST_F(UnpackedFile, OtherFilesAreNotDecompressed) {
  AtomicFile file(path("zeros.gz"));
  GzipWriter zeros(file);
  const std::string piece(1 << 20, '\0');
  for (int i = 0; i < 64; ++i) zeros.write(piece.data(), piece.size());
  zeros.finish();
  file.commit();
  expect_error([&] { copy_of("zeros.gz"); }, Fault::data, "zeros.gz: record 0 at byte 0 of the unpacked stream: not a");
  EXPECT_FALSE(fs::exists(folder()));

  write("shard.gz", kRecords);
  dtrain::write_file(path("both.gz"), read_file(path("shard.gz")) + read_file(path("zeros.gz")));
  const std::string copy = copy_of("both.gz");
  const RecordFile records(copy);
  EXPECT_EQ(records.size(), fs::file_size(copy_of("shard.gz")) + kRecordHeader);
  const RecordIndex index = RecordIndex::open(records, "");
  EXPECT_EQ(index.size(), kRecords.size());
  EXPECT_TRUE(contains(index.fault(), "record 4 at byte ")) << index.fault();
}

// Bad bodies are reported or skipped by the reader of the copy.
TEST_F(UnpackedFile, RecordsWithBadBodiesAreCopied) {
  RecordWriter writer(path("plain"));
  for (const std::string& record : kRecords) writer.append(record);
  writer.finish();
  for (const size_t at : {size_t{14}, size_t{40'000}}) {
    std::string bytes = read_file(path("plain"));
    bytes[at] ^= 1;
    AtomicFile file(path("shard.gz"));
    GzipWriter packed(file);
    packed.write(bytes.data(), bytes.size());
    packed.finish();
    file.commit();
    EXPECT_TRUE(read_file(copy_of("shard.gz")) == bytes) << at;
  }
}

TEST_F(UnpackedFile, LimitCoversAllCopies) {
  const std::string zeros(1 << 20, '\0');
  write("small.gz", std::vector<std::string>(4, zeros));
  write("large.gz", std::vector<std::string>(40, zeros));
  CacheOptions limited = cache();
  limited.max_unpacked_bytes = 40 << 20;
  const std::string reason = "may: remove some, or raise the limit); unpack it: zcat '";
  expect_error([&] { plain_record_file(path("large.gz"), limited); }, Fault::resource, reason);
  expect_no_copy();
  limited.max_unpacked_bytes = 41 << 20;
  const std::string large = plain_record_file(path("large.gz"), limited);
  expect_error([&] { plain_record_file(path("small.gz"), limited); }, Fault::resource, reason);
  EXPECT_EQ(kept(".tfrecord").size(), 1u) << "the one that was there before";
  fs::remove(large);
  plain_record_file(path("small.gz"), limited);
}

TEST_F(UnpackedFile, StopsOnRequest) {
  write("shard.gz", std::vector<std::string>(20, std::string(1 << 20, '\0')));
  for (const int after : {0, 1, 5}) {
    CacheOptions stopped = cache();
    int asked = 0;
    stopped.stop = [&] { return ++asked > after; };
    expect_error([&] { plain_record_file(path("shard.gz"), stopped); }, Fault::resource, "a stop was requested");
    expect_no_copy();
  }
}

TEST_F(UnpackedFile, RemovesUnusedCopiesAndLeftovers) {
  for (const char* name : {"old", "recent", "busy", "new"}) write(name, {name});
  const std::string old = copy_of("old"), recent = copy_of("recent"), busy = copy_of("busy");
  RecordIndex::open(RecordFile(old), "");
  ASSERT_EQ(kept(".dtidx").size(), 1u);
  age(old, 31);
  age(recent, 29);
  age(busy, 31);
  const std::string begun = temporary_name(folder() + "/0123.tfrecord");
  const std::string under_way = temporary_name(busy);
  dtrain::write_file(begun, "");
  dtrain::write_file(under_way, "");
  const FileLock lock(busy.substr(0, busy.rfind('.')) + ".lock");
  const std::string made = copy_of("new");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(fs::exists(begun));
  EXPECT_TRUE(kept(".dtidx").empty());
  for (const std::string& there : {recent, busy, under_way, made}) EXPECT_TRUE(fs::exists(there)) << there;

  age(recent, 31);
  EXPECT_EQ(copy_of("recent"), recent);  // it is read again now
  fs::remove(made);
  copy_of("new");
  EXPECT_TRUE(fs::exists(recent));
}

TEST_F(UnpackedFile, ErrorSaysHowToDecompress) {
  write("shard.gz", kRecords);
  const std::string advice = "zcat '" + path("shard.gz") + "'";
  expect_error([&] { plain_record_file(path("shard.gz"), {}); }, Fault::resource, advice);
  dtrain::write_file(path("file"), "");
  expect_error([&] { plain_record_file(path("shard.gz"), {.directory = path("file")}); }, Fault::resource, advice);
}

TEST_F(UnpackedFile, BrokenStreamLeavesNothing) {
  write("shard.gz", {kRecords.begin(), kRecords.end()});
  const std::string good = read_file(path("shard.gz"));
  std::string flipped = good;
  flipped[good.size() - 6] = static_cast<char>(flipped[good.size() - 6] ^ 4);  // in the stream's checksum
  for (const std::string& bad : {good.substr(0, good.size() - 20), flipped}) {
    dtrain::write_file(path("shard.gz"), bad);
    expect_error([&] { copy_of("shard.gz"); }, Fault::data, path("shard.gz"));
    expect_no_copy();
  }
}

}  // namespace
}  // namespace dtrain::data
