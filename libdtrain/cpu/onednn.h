// oneDNN for the CPU arms: the engine, and a cache of primitives keyed by plain bytes. Not a public header: only CPU
// arms include <dnnl.hpp>, next to this one.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "libdtrain/core/memory.h"

namespace dtrain::cpu {

// Creating a primitive compiles code: milliseconds; where no memory is left for it, oneDNN crashes. Each is created
// once per context and looked up by the bytes of a key struct, which has no padding. Threads may ask at the same time,
// and run what they get: a primitive does not change.
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
    // Without the lock, as it may ask for entries itself. Where two threads make the same one, the first stays.
    auto made = std::make_shared<Entry>(create());
    const std::lock_guard lock(mutex_);
    return *static_cast<Entry*>(entries_.emplace(std::move(bytes), std::move(made)).first->second.get());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<void>> entries_;
};

}  // namespace dtrain::cpu
