// Atomic replacement of shard sets: a conversion replaces all shards or none, wherever it is killed.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "data/shard_files.h"
#include "data/shard_manifest.h"
#include "data/shards.h"
#include "dtrain/data/record_shards.h"
#include "dtrain/io/atomic_file.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

// Splits of 3 and 2 shards whose records contain the version of the set.
std::vector<Split> splits_of(const std::string& version) {
  const auto make = [=](uint64_t i) { return concat(version, " ", i); };
  return {{"train", 3, 9, make}, {"validation", 2, 5, make}};
}

void write_set(const std::string& directory, const std::string& version, FileSystem& files = system_files()) {
  write_shards({directory, 1}, splits_of(version), {}, files);
}

// Common version of all records in all shards, or an error.
std::string version_in(const std::string& directory) try {
  std::set<std::string> versions;
  for (const char* split : {"train", "validation"}) {
    const RecordShards shards(find_shards(directory, split), {});
    std::vector<std::byte> buffer;
    for (uint64_t i = 0; i < shards.size(); ++i) {
      const auto bytes = shards.read(i, buffer);
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      versions.insert(text.substr(0, text.find(' ')));
    }
  }
  return versions.size() == 1 ? *versions.begin() : "a mixture";
} catch (const Error& error) {
  return error.what();
}

// All shards, their manifest and indices are in place, and nothing else.
void expect_whole(const std::string& directory, const std::string& version) {
  EXPECT_EQ(version_in(directory), version);
  const auto manifest = read_shard_manifest(directory);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->size(), 5u);
  for (const auto& [name, facts] : *manifest) {
    const InputFile file(directory + "/" + name);
    EXPECT_EQ(facts, (ShardFacts{file.size(), crc32c_of(file)})) << name;
  }
  for (const auto& entry : fs::directory_iterator(directory))
    EXPECT_TRUE(manifest->contains(entry.path().filename()) || entry.path().filename() == kShardManifest ||
                entry.path().extension() == ".dtidx")
        << entry.path();
}

// Kills its process at a given file system call.
class DeadlyDisk : public FileSystem {
 public:
  int create(const std::string& path) override { return spend(), FileSystem::create(path); }
  ssize_t write(int fd, const void* data, size_t size) override { return spend(), FileSystem::write(fd, data, size); }
  int sync(int) override { return 0; }
  int rename(const std::string& from, const std::string& to) override { return spend(), FileSystem::rename(from, to); }
  int unlink(const std::string& path) override { return spend(), FileSystem::unlink(path); }
  int remove_directory(const std::string& path) override { return spend(), FileSystem::remove_directory(path); }
  int sync_directory(const std::string&) override { return 0; }

  int calls = INT32_MAX;

 private:
  void spend() {
    if (calls-- == 0) ::raise(SIGKILL);
  }
};

TEST(ShardSet, ReplacementIsAtomic) {
  const TempDirectory root;
  const std::string origin = root / "origin", copy = root / "copy";
  write_set(origin, "old");
  int old = 0, interrupted = 0, renewed = 0;
  for (int calls = 0; renewed < 2; ++calls) {
    fs::remove_all(copy);
    fs::copy(origin, copy, fs::copy_options::recursive);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DeadlyDisk disk;
      disk.calls = calls;
      write_set(copy, "new", disk);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    const bool finished = WIFEXITED(status);
    const std::string found = version_in(copy);
    if (found == "old") {
      EXPECT_EQ(interrupted + renewed, 0) << "after " << calls;
      ++old;
    } else if (found == "new") {
      renewed += finished ? 2 : 0;
    } else {
      EXPECT_TRUE(contains(found, "copy: new shards are only partly in place")) << found;
      ++interrupted;
      // The next call completes the move first, even if it fails later.
      expect_error(
          [&] {
            write_shards({copy, 1}, {{"train", 3, 9, [](uint64_t) -> std::string { throw Error("no input"); }}});
          },
          Fault::config, "no input");
      expect_whole(copy, "new");
    }
    write_set(copy, "later");
    expect_whole(copy, "later");
  }
  EXPECT_GE(old, 10);
  EXPECT_EQ(interrupted, 6);  // before each of five shards and their manifest
}

// With a named source, completed shards are reused wherever the writer was killed.
TEST(ShardSet, ReusesCompletedShards) {
  const TempDirectory root;
  const std::string whole = root / "whole", copy = root / "copy";
  write_set(whole, "new");
  const ShardManifest manifest = read_shard_manifest(whole).value();
  size_t kept = 0, most = 0;
  const auto write = [&](const std::string& source, FileSystem& files) {
    kept = 0;
    write_shards({.directory = copy, .threads = 1, .source = source, .resumed = [&](size_t shards) { kept = shards; }},
                 splits_of("new"), {}, files);
  };
  for (int calls = 0;; calls += 2) {
    fs::remove_all(copy);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DeadlyDisk disk;
      disk.calls = calls;
      write("source", disk);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) break;
    const bool moved =
        fs::exists(copy + "/" + kNewShards + "/" + kShardManifest) || fs::exists(copy + "/" + kShardManifest);
    write("source", system_files());
    if (!moved) {
      EXPECT_GE(kept, most) << "fewer than after an earlier death, at call " << calls;
    }
    most = std::max(most, kept);
    expect_whole(copy, "new");
    for (const auto& [name, facts] : manifest)
      EXPECT_EQ(read_file(copy + "/" + name), read_file(whole + "/" + name)) << calls;
    EXPECT_FALSE(fs::exists(copy + "/" + kNewShards));
  }
  EXPECT_EQ(most, 5u);
}

// After a kill during the move, only the move is completed.
TEST(ShardSet, CompletesAnInterruptedMove) {
  const TempDirectory directory;
  write_set(directory.path(), "new");
  const fs::path folder = directory / kNewShards;
  fs::create_directory(folder);
  write_file(folder / "source", "a");
  for (const char* name : {"validation-00001-of-00002", kShardManifest}) fs::rename(directory / name, folder / name);
  std::vector<Split> splits = splits_of("other");
  for (Split& split : splits) split.make = [](uint64_t) -> std::string { throw Error("made again"); };
  write_shards({.directory = directory.path(), .source = "a"}, splits);
  expect_whole(directory.path(), "new");
  EXPECT_FALSE(fs::exists(folder));
}

TEST(ShardSet, ReusesShardsOnlyWithTheSameSource) {
  const TempDirectory directory;
  write_set(directory.path(), "old");
  std::vector<Split> splits = splits_of("new");
  int made = 0;
  bool fails = true;
  for (Split& split : splits)
    split.make = [&, make = split.make](uint64_t i) {
      if (++made > 10 && fails) throw Error(Fault::data, "record ten");
      return make(i);
    };
  std::vector<uint64_t> told;
  const auto write = [&](const std::string& source) {
    told.clear();
    made = 0;
    write_shards({.directory = directory.path(), .threads = 1, .source = source}, splits,
                 [&](const Split&, uint64_t done) { told.push_back(done); });
  };
  expect_error([&] { write("a"); }, Fault::data, "record ten");
  EXPECT_EQ(version_in(directory.path()), "old");
  expect_error([&] { write("b"); }, Fault::data, "record ten");  // three of nine and two of five were complete
  EXPECT_EQ(told.size(), 10u);
  write_file(directory / ".shards.new/train-00001-of-00003", "cut");
  fails = false;
  write("b");
  EXPECT_EQ(made, 8);  // the truncated shard, and the second split
  EXPECT_EQ(told.front(), 3u);
  EXPECT_EQ(told.back(), 5u);
  expect_whole(directory.path(), "new");
}

TEST(ShardSet, IsUnchangedIfASplitFails) {
  const TempDirectory directory;
  write_set(directory.path(), "old");
  std::vector<Split> splits = splits_of("new");
  splits[1].make = [](uint64_t i) { return i < 4 ? "new" : throw Error(Fault::data, "record four"); };
  expect_error([&] { write_shards({directory.path(), 2}, splits); }, Fault::data, "record four");
  expect_whole(directory.path(), "old");
  splits[1].shards = 4;
  expect_error([&] { write_shards({directory.path(), 2}, splits); }, Fault::config, "-of-00002 of another data set");
  expect_whole(directory.path(), "old");
  expect_error(
      [&] {
        write_shards({directory.path(), 2}, {{"../train", 1, 0, {}}});
      },
      Fault::config, "split '../train'");
}

TEST(ShardSet, KeepsSplitsThatAreNotWritten) {
  const TempDirectory directory;
  write_set(directory.path(), "old");
  write_shards({directory.path(), 1}, {splits_of("old").front()});
  expect_whole(directory.path(), "old");
}

TEST(ShardSet, HasOneWriterAtATime) {
  const TempDirectory directory;
  Split split = splits_of("first").front();
  int refused = 0;
  const auto intrude = [&](const Split&, uint64_t) {
    expect_error([&] { write_set(directory.path(), "second"); }, Fault::config,
                 "locked by process " + std::to_string(::getpid()));
    ++refused;
  };
  write_shards({directory.path(), 1}, {split, splits_of("first").back()}, intrude);
  EXPECT_EQ(refused, 14);
  expect_whole(directory.path(), "first");
}

TEST(ShardSet, DoesNotFollowLinks) {
  const TempDirectory root;
  const std::string directory = root / "set";
  fs::create_directory(root / "mine");
  write_file(root / "mine/thesis", "years of work");
  fs::create_directory(directory);
  fs::create_directory_symlink(root / "mine", directory + "/" + kNewShards);
  expect_error([&] { write_set(directory, "new"); }, Fault::config, ".shards.new: is a link");
  EXPECT_EQ(read_file(root / "mine/thesis"), "years of work");
  fs::remove(directory + "/" + kNewShards);
  write_file(root / "archived", "an old shard");
  fs::create_symlink(root / "archived", directory + "/train-00001-of-00003");
  write_set(directory, "new");
  expect_whole(directory, "new");
  EXPECT_EQ(read_file(root / "archived"), "an old shard");
}

// Shards of TensorFlow and of earlier versions.
TEST(ShardSet, ManifestIsOptional) {
  const TempDirectory directory;
  write_set(directory.path(), "old");
  fs::remove(directory / kShardManifest);
  EXPECT_EQ(version_in(directory.path()), "old");
  EXPECT_FALSE(read_shard_manifest(directory.path()));
  write_set(directory.path(), "new");
  expect_whole(directory.path(), "new");
}

TEST(ShardManifest, RejectsDamage) {
  const TempDirectory directory;
  write_set(directory.path(), "a");
  const std::string path = directory / kShardManifest, text = read_file(path);
  EXPECT_TRUE(contains(text, "dtrain shards, version 1\ntrain-00000-of-00003 57 ")) << text;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    for (const std::string& bytes : {damaged, text.substr(0, at)}) {
      write_file(path, bytes);
      expect_error([&] { read_shard_manifest(directory.path()); }, Fault::data, ".shards: damaged");
    }
  }
  write_set(directory.path(), "b");  // does not read the old manifest
  expect_whole(directory.path(), "b");
}

TEST(ShardManifest, ParsesTheSplitOfAShard) {
  EXPECT_EQ(split_of_shard("train-00000-of-00002"), "train");
  EXPECT_EQ(split_of_shard("my-train-1-of-2.tfrecord.gz"), "my-train");
  for (const char* other : {"", "train", "-1-of-2", ".train-1-of-2", "train-of-2", "train-1-of-x"})
    EXPECT_EQ(split_of_shard(other), "") << other;
}

}  // namespace
}  // namespace dtrain::data
