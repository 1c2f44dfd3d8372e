// Durable output: a file that is on the disk once sync() returns, a file that appears whole or not at all, and the same
// for a directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libdtrain/io/file_system.h"

namespace dtrain {

// A new file, or one that the caller has opened, written front to back. Every failure throws Error(Fault::resource)
// naming the path.
class OutputFile {
 public:
  OutputFile(FileSystem& files, std::string path);
  // Writes to `fd`, just opened, which belongs to the object from now on; `path` names it in errors.
  OutputFile(FileSystem& files, std::string path, int fd);
  // Closes. What was written and not synced may or may not be on the disk.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Flushes to the disk and closes: nothing may be written afterwards.
  void sync();
  // Closes without flushing: a loss of power may leave the file empty or damaged.
  void close();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // CRC-32C of all that was written.
  uint32_t crc() const { return crc_; }

 private:
  FileSystem& files_;
  std::string path_;
  int fd_;
  uint64_t size_ = 0;
  uint32_t crc_ = 0;
};

// A file that replaces `path` in one step when it is complete: written beside it, synced, renamed, and the directory
// synced. Without commit() it leaves nothing behind.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path, FileSystem& files = system_files());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size) { file_.write(data, size); }
  void write(std::string_view text) { file_.write(text); }
  // `durable` false: nothing is synced, for what is cheaply made again and found out when it is damaged.
  void commit(bool durable = true);

  const std::string& path() const { return path_; }
  // The file beside `path` that is being written.
  OutputFile& output() { return file_; }

 private:
  FileSystem& files_;
  std::string path_;
  OutputFile file_;
  bool committed_ = false;
};

// 16 random hex digits: names with them do not collide between processes and hosts.
std::string unique_suffix();
// "<path>.tmp-<unique_suffix()>".
std::string temporary_name(const std::string& path);
// True for what temporary_name() makes of a path.
bool is_temporary_name(std::string_view path);
// The directory that holds `path`: "." for a bare name.
std::string directory_of(const std::string& path);

// Makes `path` and what leads to it; each new directory is entered durably in its parent. Throws Error(Fault::config)
// where a file is in the way, Error(Fault::resource) where the disk fails.
void make_directories(FileSystem& files, const std::string& path);
// Removes a directory of plain files, and nothing through a link. Returns false, with errno set, where something is
// left.
bool remove_files(FileSystem& files, const std::string& path);
// Gives the complete and synced directory `from` its final name `to`, durably.
void commit_directory(FileSystem& files, const std::string& from, const std::string& to);

}  // namespace dtrain
