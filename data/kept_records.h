// KeptRecords: in-memory cache of records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dtrain::data {

// Thread-safe.
class KeptRecords {
 public:
  std::optional<std::span<const std::byte>> find(uint64_t record) const {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(record);
    return found == records_.end() ? std::nullopt : std::optional(std::span(found->second));
  }
  // If two threads read the same record, the first copy is kept.
  std::span<const std::byte> keep(uint64_t record, std::span<const std::byte> bytes) {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    const std::lock_guard lock(mutex_);
    return records_.try_emplace(record, std::move(copy)).first->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, const std::vector<std::byte>> records_;
};

}  // namespace dtrain::data
