// Durable output: files that are on disk after sync(), and atomic creation of files and directories.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dtrain/io/file_system.h"

namespace dtrain {

// New file, or one opened by the caller, written sequentially. Failures throw Error(Fault::resource) naming the path.
class OutputFile {
 public:
  OutputFile(FileSystem& files, std::string path);
  // Takes ownership of `fd`; `path` is for errors.
  OutputFile(FileSystem& files, std::string path, int fd);
  // Closes. Data that was not synced may be lost on a power failure.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Flushes to disk and closes: the last call.
  void sync();
  // Closes without flushing: after a power failure the file may be empty or damaged.
  void close();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // CRC-32C of all written bytes.
  uint32_t crc() const { return crc_; }

 private:
  FileSystem& files_;
  std::string path_;
  int fd_;
  uint64_t size_ = 0;
  uint32_t crc_ = 0;
};

// Atomic replacement of `path`: written to a temporary file beside it, synced, renamed, directory synced. Without
// commit() it is removed.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path, FileSystem& files = system_files());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size) { file_.write(data, size); }
  void write(std::string_view text) { file_.write(text); }
  // `durable` false: no syncs, for files that are cheap to recreate and whose damage is detected.
  void commit(bool durable = true);

  const std::string& path() const { return path_; }
  // The temporary file.
  OutputFile& output() { return file_; }

 private:
  FileSystem& files_;
  std::string path_;
  OutputFile file_;
  bool committed_ = false;
};

// 16 random hex digits: unique among processes and hosts.
std::string unique_suffix();
// "<path>.tmp-<unique_suffix()>".
std::string temporary_name(const std::string& path);
// Whether the path has the form of temporary_name().
bool is_temporary_name(std::string_view path);
// Parent directory of `path`; "." for a bare name.
std::string directory_of(const std::string& path);

// Creates `path` and its parents, durably. Throws Error(Fault::config) if a file is in the way, Error(Fault::resource)
// if the disk fails.
void make_directories(FileSystem& files, const std::string& path);
// Removes a directory of plain files, without following links. Returns false, with errno set, if something remains.
bool remove_files(FileSystem& files, const std::string& path);
// Renames the complete, synced directory `from` to `to`, durably.
void commit_directory(FileSystem& files, const std::string& from, const std::string& to);

}  // namespace dtrain
