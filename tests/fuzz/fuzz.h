// Shared parts of the fuzzers. Each parses untrusted bytes: it may reject them with an Error of the expected fault, and
// nothing else may happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "dtrain/core/error.h"
#include "tests/files.h"

namespace dtrain::fuzz {

// Calls read(). An Error of another fault is a finding, as is any other exception.
template <class Read>
int expect(Fault fault, Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.fault() != fault) throw;
  }
  return 0;
}

inline std::string text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// Per-process folder in memory, removed on exit.
inline const std::filesystem::path& folder() {
  struct Folder {
    Folder() {
      std::string name = "/dev/shm/dtrain-fuzz-XXXXXX";
      DT_CHECK(mkdtemp(name.data()), "cannot create a directory like ", name);
      path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
  };
  static const Folder folder;
  return folder.path;
}

// Path of a file with these contents.
inline std::string file_of(const char* name, const std::string& bytes) {
  const std::string path = folder() / name;
  write_file(path, bytes);
  return path;
}

}  // namespace dtrain::fuzz
