#include "libdtrain/io/remote/read_window.h"

#include <iterator>
#include <utility>

namespace dtrain::remote {

std::shared_ptr<const ReadWindow> ReadWindows::find(uint64_t file, uint64_t offset, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = of_file_.find(file);
  if (found == of_file_.end() || !found->second->window->holds(offset) ||
      !found->second->window->holds(offset + bytes - 1))
    return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->window;
}

void ReadWindows::keep(uint64_t file, std::shared_ptr<const ReadWindow> window) {
  const std::lock_guard lock(mutex_);
  if (const auto found = of_file_.find(file); found != of_file_.end()) erase(found->second);
  bytes_ += window->bytes.size();
  recent_.push_front({file, std::move(window)});
  of_file_[file] = recent_.begin();
  while (bytes_ > most_bytes_ && recent_.size() > 1) erase(std::prev(recent_.end()));
}

void ReadWindows::drop(uint64_t file) {
  const std::lock_guard lock(mutex_);
  if (const auto found = of_file_.find(file); found != of_file_.end()) erase(found->second);
}

size_t ReadWindows::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void ReadWindows::erase(std::list<Entry>::iterator entry) {
  bytes_ -= entry->window->bytes.size();
  of_file_.erase(entry->file);
  recent_.erase(entry);
}

}  // namespace dtrain::remote
