#include "dtrain/data/record_shards.h"

#include <atomic>
#include <filesystem>

#include "tests/testing.h"

namespace dtrain::data {
namespace {

// Shards of three records each, the third of which has these bytes.
std::vector<std::string> write_triples(const TempDirectory& directory, const std::vector<std::string>& thirds) {
  std::vector<std::string> paths;
  for (const std::string& third : thirds) {
    paths.push_back((directory / concat("train-0000", paths.size(), "-of-0000", thirds.size())).string());
    RecordWriter writer(paths.back());
    for (const std::string& record : {std::string("one"), std::string("two"), third}) writer.append(record);
    writer.finish();
  }
  return paths;
}

TEST(RecordShards, ContentsDetectChangesOfEqualSize) {
  const TempDirectory one, other, copy;
  const RecordShards shards(write_triples(one, {"a", "b", "c"}), {});
  const RecordShards others(write_triples(other, {"a", "x", "c"}), {});
  EXPECT_EQ(shards.identity(), others.identity());
  EXPECT_NE(shards.contents(), others.contents());
  const auto line = [](const RecordShards& of, int i) {
    std::string text = of.contents();
    for (; i > 0; --i) text.erase(0, text.find('\n') + 1);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(line(shards, 0), line(others, 0));
  EXPECT_NE(line(shards, 1), line(others, 1));
  EXPECT_EQ(line(shards, 2), line(others, 2));
  EXPECT_EQ(line(shards, 1).find("train-00001-of-00003: 55 bytes, 3 records, checksum "), 0u) << line(shards, 1);
  EXPECT_EQ(RecordShards(write_triples(copy, {"a", "b", "c"}), {}).contents(), shards.contents());
}

TEST(RecordShards, ReportProgress) {
  const TempDirectory directory;
  std::vector<uint64_t> told;
  CacheOptions cache;
  cache.progress = [&](uint64_t opened, uint64_t files) {
    EXPECT_EQ(files, 5u);
    told.push_back(opened);
  };
  const RecordShards shards(write_triples(directory, {"a", "b", "c", "d", "e"}), cache);
  EXPECT_EQ(told, (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

std::string text_of(const RecordShards& shards, uint64_t record) {
  std::vector<std::byte> buffer;
  const auto bytes = shards.read(record, buffer);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(RecordShards, CacheRecordsInMemory) {
  const TempDirectory directory;
  const std::vector<std::string> paths = write_triples(directory, {"a", "b"});
  const RecordShards kept(paths, {.keeps_records = true}), others(paths, {});
  EXPECT_EQ(kept.identity(), others.identity());
  for (const RecordShards* shards : {&kept, &others}) EXPECT_EQ(text_of(*shards, 2), "a");
  std::filesystem::resize_file(paths[0], 3);
  EXPECT_EQ(text_of(kept, 2), "a");
  EXPECT_THROW(text_of(others, 2), Error);
  EXPECT_THROW(text_of(kept, 1), Error) << "it has not been read";
  EXPECT_EQ(text_of(kept, 5), "b");
}

TEST(RecordShards, RepeatTheFirstRecord) {
  const TempDirectory directory;
  const std::vector<std::string> paths = write_triples(directory, {"a", "b"});
  const RecordShards first(paths, {.keeps_records = true, .first_record_only = true});
  EXPECT_EQ(first.size(), 6u);
  EXPECT_NE(first.identity(), RecordShards(paths, {}).identity());
  for (uint64_t record = 0; record < 6; ++record) {
    EXPECT_EQ(text_of(first, record), "one");
    EXPECT_EQ(first.locate(record).offset, 0u);
    EXPECT_EQ(first.locate(record).file, paths[0]);
    for (const std::string& path : paths) std::filesystem::resize_file(path, 0);
  }
}

}  // namespace
}  // namespace dtrain::data
