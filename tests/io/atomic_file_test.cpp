// Durable output: order of system calls, failures, and directory locks.
#include "dtrain/io/atomic_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/file_lock.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::string resource_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::resource) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

// Records calls; a disk of `capacity` bytes with short writes of at most `chunk` bytes and occasional EINTR.
class SmallDisk : public FileSystem {
 public:
  int create(const std::string& path) override {
    calls += "create ";
    return FileSystem::create(path);
  }
  ssize_t write(int fd, const void* data, size_t size) override {
    if (++writes % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    if (capacity == 0) {
      errno = ENOSPC;
      return -1;
    }
    const ssize_t written = FileSystem::write(fd, data, std::min({size, chunk, capacity}));
    capacity -= static_cast<size_t>(written);
    return written;
  }
  int sync(int fd) override {
    calls += "sync ";
    return failing == "sync" ? fail() : FileSystem::sync(fd);
  }
  int rename(const std::string& from, const std::string& to) override {
    calls += "rename ";
    return failing == "rename" ? fail() : FileSystem::rename(from, to);
  }
  int sync_directory(const std::string& path) override {
    calls += "sync_directory ";
    return failing == "sync_directory" ? fail() : FileSystem::sync_directory(path);
  }

  static int fail() {
    errno = EIO;
    return -1;
  }
  std::string calls, failing;
  size_t capacity = SIZE_MAX, chunk = SIZE_MAX;
  int writes = 0;
};

TEST(AtomicFile, AppearsWholeAtCommit) {
  const TempDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "old");
  SmallDisk disk;
  disk.chunk = 7;
  AtomicFile file(path, disk);
  const std::string text(1000, 'x');
  file.write(text);
  EXPECT_EQ(read_file(path), "old");
  file.commit();
  EXPECT_EQ(read_file(path), text);
  EXPECT_EQ(file.output().size(), 1000u);
  EXPECT_EQ(file.output().crc(), crc32c(text.data(), text.size()));
  EXPECT_EQ(disk.calls, "create sync rename sync_directory ");
}

TEST(AtomicFile, WhatIsEasilyMadeAgainIsNotSynced) {
  const TempDirectory directory;
  SmallDisk disk;
  AtomicFile file(directory / "a", disk);
  file.write("x");
  file.commit(/*durable=*/false);
  EXPECT_EQ(read_file(directory / "a"), "x");
  EXPECT_EQ(disk.calls, "create rename ");
}

TEST(AtomicFile, FailureKeepsTheOldFileAndLeavesNothing) {
  const TempDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "old");
  for (const char* failing : {"write", "sync", "rename"}) {
    SmallDisk disk;
    disk.failing = failing;
    if (disk.failing == "write") disk.capacity = 500;
    const std::string message = resource_error([&] {
      AtomicFile file(path, disk);
      file.write(std::string(1000, 'x'));
      file.commit();
    });
    EXPECT_TRUE(contains(message, path)) << message;
    EXPECT_TRUE(contains(message, disk.failing == "write" ? "No space left" : "Input/output error")) << message;
    EXPECT_EQ(read_file(path), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
  }
}

TEST(AtomicFile, DirectoriesAreMadeDurably) {
  const TempDirectory directory;
  SmallDisk disk;
  make_directories(disk, directory / "a/b");
  EXPECT_EQ(disk.calls, "sync_directory sync_directory ");
  make_directories(disk, directory / "a/b");
  EXPECT_TRUE(std::filesystem::is_directory(directory / "a/b"));
  write_file(directory / "file", "");
  for (const char* name : {"file", "file/a"})
    expect_error([&] { make_directories(disk, directory / name); }, Fault::config, "file: is not a directory");
}

TEST(AtomicFile, TemporaryNamesAreRecognised) {
  const std::string name = temporary_name("dir/step-5");
  EXPECT_TRUE(name.starts_with("dir/step-5.tmp-"));
  EXPECT_NE(name, temporary_name("dir/step-5"));
  EXPECT_TRUE(is_temporary_name(name));
  for (const char* other : {"", "step-5", "step-5.tmp-", "a.tmp-0123456789abcdeg", "0123456789abcdef"})
    EXPECT_FALSE(is_temporary_name(other)) << other;
  EXPECT_EQ(directory_of("a/b/c"), "a/b");
  EXPECT_EQ(directory_of("/a"), "/");
  EXPECT_EQ(directory_of("a"), ".");
}

TEST(InputFile, ReadsByPositionAndNoticesTheEnd) {
  const TempDirectory directory;
  write_file(directory / "a", "0123456789");
  const InputFile file(directory / "a");
  EXPECT_EQ(file.size(), 10u);
  std::string text(4, ' ');
  file.read(3, text.data(), 4);
  EXPECT_EQ(text, "3456");
  EXPECT_EQ(file.read_some(8, text.data(), 4), 2u);
  EXPECT_THROW(file.read(8, text.data(), 4), Error);
  EXPECT_EQ(read_text(directory / "a", 10), "0123456789");
  EXPECT_THROW(read_text(directory / "a", 9), Error);
}

TEST(FileLock, SecondHolderIsToldThePid) {
  const TempDirectory directory;
  const std::string path = directory / "lock";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(path);
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  try {
    const FileLock lock(path);
    ADD_FAILURE() << "locked twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::config);
    EXPECT_TRUE(contains(error.what(), "process " + std::to_string(child))) << error.what();
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const FileLock lock(path);
  EXPECT_EQ(read_file(path), std::to_string(::getpid()) + "\n");
}

}  // namespace
}  // namespace dtrain
