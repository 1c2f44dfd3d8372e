// ResultFile: existing objects keep their kind, and links stay links.
#include "libdtrain/io/result_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <iostream>
#include <thread>

#include "dtrain/core/error.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

void write_result(const std::string& path, const std::string& text) {
  ResultFile file(path);
  file.write(text);
  file.commit();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ResultFile, AppearsWholeAtCommit) {
  const TempDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "old");
  {
    ResultFile file(path);
    file.write("half of it");
    EXPECT_EQ(read_file(path), "old");
  }
  EXPECT_EQ(read_file(path), "old");
  write_result(path, "new");
  EXPECT_EQ(read_file(path), "new");
  write_result(directory / "b", "another");
  EXPECT_EQ(read_file(directory / "b"), "another");
  EXPECT_EQ(names_in(directory.path()), (std::vector<std::string>{"a", "b"}));
}

TEST(ResultFile, LinksStayAndWhatTheyLeadToIsReplaced) {
  const TempDirectory directory;
  fs::create_directory(directory / "far");
  write_file(directory / "far/target", "old");
  fs::create_symlink("far/target", directory / "link");
  fs::create_symlink(directory / "link", directory / "chain");
  fs::create_symlink("far/later", directory / "dangling");
  fs::create_symlink("far", directory / "folder");
  write_result(directory / "chain", "through two links");
  EXPECT_EQ(read_file(directory / "far/target"), "through two links");
  write_result(directory / "folder/target", "through a linked folder");
  EXPECT_EQ(read_file(directory / "far/target"), "through a linked folder");
  write_result(directory / "dangling", "what was not there");
  EXPECT_EQ(read_file(directory / "far/later"), "what was not there");
  for (const char* name : {"link", "chain", "dangling", "folder"})
    EXPECT_TRUE(fs::is_symlink(directory / name)) << name;
  EXPECT_EQ(names_in(directory / "far"), (std::vector<std::string>{"later", "target"}));

  fs::create_symlink("b", directory / "a");
  fs::create_symlink("a", directory / "b");
  expect_error([&] { ResultFile(directory / "a"); }, Fault::config, "/a: its links form a cycle");
  expect_error([&] { ResultFile(directory / "folder"); }, Fault::config, "/folder: is a directory");
}

TEST(ResultFile, FifosAreWrittenThrough) {
  const TempDirectory directory;
  const std::string path = directory / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  fs::create_symlink("fifo", directory / "link");
  const std::string text(200'000, 'x');  // exceeds a pipe's buffer
  for (const char* name : {"fifo", "link"}) {
    std::string received;
    std::thread reader([&] { received = read_file(path); });
    write_result(directory / name, text);
    reader.join();
    EXPECT_TRUE(received == text) << received.size();
  }
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_EQ(names_in(directory.path()), (std::vector<std::string>{"fifo", "link"}));
}

TEST(ResultFile, DevicesAreWrittenThrough) {
  const TempDirectory directory;
  const std::string null = directory / "null", full = directory / "full";
  const auto make = [](const std::string& path, unsigned minor) {
    return ::mknod(path.c_str(), S_IFCHR | 0600, ::makedev(1, minor)) == 0 && ::access(path.c_str(), W_OK) == 0;
  };
  if (!make(null, 3) || !make(full, 7) || ::close(::open(null.c_str(), O_WRONLY)) < 0)
    GTEST_SKIP() << "SKIPPED: the right to make devices";
  write_result(null, "nothing of this is kept");
  expect_error([&] { write_result(full, "x"); }, Fault::resource, "/full: No space left on device");
  for (const std::string& path : {null, full}) EXPECT_TRUE(fs::is_character_file(path)) << path;
  EXPECT_EQ(names_in(directory.path()), (std::vector<std::string>{"full", "null"}));
}

// A descriptor's name refers to the open file and its position, not to a path.
TEST(ResultFile, DescriptorsOfThisProcessAreWrittenThrough) {
  const TempDirectory directory;
  const std::string path = directory / "log";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "before ", 7), 7);
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"}) write_result(folder + std::to_string(fd), "result ");
  ASSERT_EQ(::write(fd, "after", 5), 5);
  ::close(fd);
  EXPECT_EQ(read_file(path), "before result result after");
}

TEST(ResultFile, AWriteProtectedFileIsRefused) {
  const TempDirectory directory;
  const std::string path = directory / "protected";
  write_file(path, "old");
  fs::permissions(directory.path(), fs::perms{0777});
  fs::permissions(path, fs::perms{0444});
  EXPECT_EXIT(
      {
        if (::geteuid() == 0 && ::setuid(65534) != 0) std::exit(2);  // root may write anywhere
        try {
          write_result(path, "new");
          std::exit(0);
        } catch (const Error& error) {
          std::cerr << error.what();
          std::exit(static_cast<int>(error.fault()));
        }
      },
      testing::ExitedWithCode(static_cast<int>(Fault::resource)), "protected: Permission denied");
  EXPECT_EQ(read_file(path), "old");
}

}  // namespace
}  // namespace dtrain
