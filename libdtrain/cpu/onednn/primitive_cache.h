// A cache of oneDNN primitives. Not a public header: only CPU arms include <dnnl.hpp>.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "dtrain/core/memory.h"

namespace dtrain::cpu {

// Primitives of a context by the bytes of a key struct without padding. Creating a primitive compiles code, which takes
// milliseconds and crashes where no memory is left, so each is created once. Thread-safe: primitives are immutable.
class PrimitiveCache {
 public:
  // The cached Entry for `key`, made by `create()` at first use. Each Entry type has its own key space.
  template <class Entry, class Key, class Create>
  Entry& get(const Key& key, Create&& create) {
    static_assert(std::has_unique_object_representations_v<Key>, "its padding would be looked up, too");
    static const char kSpace = 0;  // one address per (Entry, Key)
    const void* const space = &kSpace;
    std::string bytes(sizeof space + sizeof key, '\0');
    std::memcpy(bytes.data(), &space, sizeof space);
    std::memcpy(bytes.data() + sizeof space, &key, sizeof key);
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = entries_.find(bytes); it != entries_.end()) return *static_cast<Entry*>(it->second.get());
    }
    require_address_space("oneDNN");
    // Without the lock: create() may look up entries itself. Where two threads create the same entry, the first is
    // kept.
    auto made = std::make_shared<Entry>(create());
    const std::lock_guard lock(mutex_);
    return *static_cast<Entry*>(entries_.emplace(std::move(bytes), std::move(made)).first->second.get());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<void>> entries_;
};

}  // namespace dtrain::cpu
