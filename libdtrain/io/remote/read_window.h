// ReadWindows: the read-ahead buffers of open remote files, bounded in total.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace dtrain::remote {

// Bytes of a file from `offset` on.
struct ReadWindow {
  uint64_t offset = 0;
  std::vector<char> bytes{};

  bool holds(uint64_t at) const { return at >= offset && at - offset < bytes.size(); }
};

// One window per file. When all together exceed the limit, the least recently used are dropped. Thread-safe.
class ReadWindows {
 public:
  explicit ReadWindows(size_t most_bytes) : most_bytes_(most_bytes) {}
  // The file's window if it holds bytes from this offset on, else null.
  std::shared_ptr<const ReadWindow> find(uint64_t file, uint64_t offset, size_t bytes = 1);
  void keep(uint64_t file, std::shared_ptr<const ReadWindow> window);
  void drop(uint64_t file);
  size_t bytes() const;

 private:
  struct Entry {
    uint64_t file;
    std::shared_ptr<const ReadWindow> window;
  };
  void erase(std::list<Entry>::iterator entry);

  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> recent_;  // the most recently used first
  std::unordered_map<uint64_t, std::list<Entry>::iterator> of_file_;
  size_t bytes_ = 0;
};

}  // namespace dtrain::remote
