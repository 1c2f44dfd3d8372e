#include "data/image_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "data/file_tree.h"
#include "data/index_file.h"
#include "data/parallel.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/file_lock.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSniffedBytes = 64, kNamesBetweenStops = 1000;

struct ImageIndexHeader {
  char magic[8] = {'D', 'T', 'I', 'M', 'G', '0', '0', '1'};
  uint64_t files = 0, name_bytes = 0;
};

struct ImageIndexEntry {
  uint64_t bytes = 0;
  int64_t modified = 0;
  uint32_t crc = 0, content = 0;
  uint64_t name_bytes = 0;
};

// Files of a class, or of any folder, without content and checksum.
struct Listing {
  std::vector<IndexedFile> files{};
  std::vector<IndexFault> faults{};
  uint64_t left_out = 0;
};

// Size and modification time of a file. Returns the reason why it is none, else "".
std::string stat_file(const std::string& root, IndexedFile& file) {
  const std::string path = path_below(root, file.name);
  struct stat info;
  if (::stat(path.c_str(), &info) < 0) return describe_errno("stat", path);
  if (!S_ISREG(info.st_mode)) return path + ": is not a regular file";
  file.bytes = static_cast<uint64_t>(info.st_size);
  file.modified = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return "";
}

Listing list_class(const std::string& root, const std::string& name) {
  Listing listing;
  const std::string folder = root + "/" + name;
  const auto fault = [&](const std::string&, const Error& error) { listing.faults.push_back({"", error.what()}); };
  for (const fs::path& inner : files_below(folder, fault, &listing.left_out)) {
    IndexedFile file{.name = name + "/" + inner.string()};
    std::string reason = stat_file(root, file);
    if (reason.empty())
      listing.files.push_back(std::move(file));
    else
      listing.faults.push_back({std::move(file.name), std::move(reason)});
  }
  // ImageFolder's order: folders, then their files.
  std::ranges::sort(listing.files, {}, [](const IndexedFile& file) {
    const std::string_view path = file.name;
    const size_t slash = path.rfind('/');
    return std::tuple(path.substr(0, slash), path.substr(slash + 1));
  });
  return listing;
}

// Reads content and checksum. Returns the fault of a file that should be an image and cannot be used, else "".
std::string examine(const std::string& path, IndexedFile& file) {
  try {
    const InputFile input(path);
    std::byte head[kSniffedBytes];
    const size_t got = input.read_some(0, head, sizeof head);
    try {
      sniff_image(std::span(head, got));
    } catch (const Error&) {
      if (has_image_name(path)) throw;
      file.content = FileContent::other;
      file.crc = 0;
      return "";
    }
    if (input.size() > kMaxRecordBytes)
      throw Error(Fault::data, concat(input.size(), " bytes, expected at most ", kMaxRecordBytes));
    file.content = FileContent::image;
    file.bytes = input.size();
    file.crc = crc32c_of(input);
    return "";
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    const std::string reason = error.what();
    return reason.find(path) == std::string::npos ? concat(path, ": ", reason) : reason;
  }
}

// More than any index of nearly these files has.
size_t most_bytes(const std::vector<IndexedFile>& files) {
  size_t bytes = sizeof(ImageIndexHeader);
  for (const IndexedFile& file : files) bytes += sizeof(ImageIndexEntry) + file.name.size();
  return 2 * bytes + (size_t{1} << 20);
}

class Indexer {
 public:
  // `place`: file or folder whose index it is.
  Indexer(const std::string& root, const std::string& place, const CacheOptions& cache)
      : root_(root), place_(place), cache_(cache) {}

  void list(const std::vector<std::string>& classes) {
    std::vector<Listing> listings(classes.size());
    for_each_in_parallel(classes.size(), [&](size_t i) {
      require_no_stop();
      listings[i] = list_class(root_, classes[i]);
    });
    for (Listing& listing : listings) {
      std::ranges::move(listing.files, std::back_inserter(index_.files));
      std::ranges::move(listing.faults, std::back_inserter(index_.faults));
      index_.left_out += listing.left_out;
    }
  }

  void list_files(const std::vector<std::string>& names) {
    index_.files.resize(names.size());
    std::vector<std::string> faults(names.size());
    for_each_in_parallel(names.size(), [&](size_t i) {
      if (i % kNamesBetweenStops == 0) require_no_stop();
      index_.files[i].name = names[i];
      faults[i] = stat_file(root_, index_.files[i]);
    });
    for (size_t i = 0; i < names.size(); ++i)
      if (!faults[i].empty()) leave_out(i, std::move(faults[i]));
    std::erase_if(index_.files, [](const IndexedFile& file) { return file.name.empty(); });
  }

  ImageIndex complete() {
    if (!take_cached()) {
      const auto lock = wait_for_others();
      if (lock) take_cached();
      read_others();
    }
    return std::move(index_);
  }

 private:
  void require_no_stop() const {
    if (cache_.stop && cache_.stop()) throw Error(Fault::resource, "a stop was requested while data was opened");
  }

  // Clears the name of the file.
  void leave_out(size_t file, std::string reason) {
    index_.faults.push_back({std::exchange(index_.files[file].name, {}), std::move(reason)});
  }

  // Takes what is known of unchanged files. Returns whether that is all of them, and nothing else is stored.
  bool take_cached() {
    for (const std::string& place : index_places(place_, cache_.directory)) {
      const std::optional<std::string> body = load_index(place, most_bytes(index_.files));
      const auto stored = body ? image_index_from(*body) : std::nullopt;
      if (!stored) continue;
      if (take(*stored)) return true;
    }
    return false;
  }

  bool take(const std::vector<IndexedFile>& stored) {
    std::unordered_map<std::string_view, const IndexedFile*> known;
    for (const IndexedFile& file : stored) known.emplace(file.name, &file);
    unknown_.clear();
    for (size_t i = 0; i < index_.files.size(); ++i) {
      IndexedFile& file = index_.files[i];
      const auto found = known.find(file.name);
      if (found == known.end() || found->second->bytes != file.bytes || found->second->modified != file.modified) {
        unknown_.push_back(i);
      } else {
        file.crc = found->second->crc;
        file.content = found->second->content;
      }
    }
    has_taken_ = true;
    return unknown_.empty() && stored.size() == index_.files.size();
  }

  // Held while files are read and the index is stored. Null if no lock can be made.
  std::unique_ptr<FileLock> wait_for_others() const {
    if (cache_.directory.empty()) return nullptr;
    const std::string path = index_places(place_, cache_.directory).back() + ".lock";
    const auto stop = [&] {
      if (cache_.progress) cache_.progress(0, has_taken_ ? unknown_.size() : index_.files.size());
      return cache_.stop && cache_.stop();
    };
    try {
      make_directories(system_files(), directory_of(path));
      return std::make_unique<FileLock>(path, FileLock::IfHeld::wait, stop);
    } catch (const Error&) {
      require_no_stop();
      return nullptr;
    }
  }

  void read_others() {
    if (!has_taken_)
      for (size_t i = 0; i < index_.files.size(); ++i) unknown_.push_back(i);
    std::vector<std::string> faults(unknown_.size());
    std::mutex mutex;
    uint64_t done = 0;
    for_each_in_parallel(unknown_.size(), [&](size_t i) {
      require_no_stop();
      IndexedFile& file = index_.files[unknown_[i]];
      faults[i] = examine(path_below(root_, file.name), file);
      if (!cache_.progress) return;
      const std::lock_guard lock(mutex);
      cache_.progress(++done, unknown_.size());
    });
    for (size_t i = 0; i < unknown_.size(); ++i)
      if (!faults[i].empty()) leave_out(unknown_[i], std::move(faults[i]));
    std::erase_if(index_.files, [](const IndexedFile& file) { return file.name.empty(); });
    save_index(place_, cache_.directory, image_index_body(index_.files));
  }

  const std::string &root_, &place_;
  const CacheOptions& cache_;
  ImageIndex index_;
  bool has_taken_ = false;
  std::vector<size_t> unknown_;  // files without content and checksum
};

}  // namespace

std::string path_below(const std::string& root, const std::string& name) {
  return name.starts_with('/') ? name : root + "/" + name;
}

std::string image_index_body(const std::vector<IndexedFile>& files) {
  ImageIndexHeader header;
  header.files = files.size();
  for (const IndexedFile& file : files) header.name_bytes += file.name.size();
  std::string body(reinterpret_cast<const char*>(&header), sizeof header);
  body.reserve(sizeof header + files.size() * sizeof(ImageIndexEntry) + header.name_bytes);
  for (const IndexedFile& file : files) {
    const ImageIndexEntry entry{file.bytes, file.modified, file.crc, static_cast<uint32_t>(file.content),
                                file.name.size()};
    body.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }
  for (const IndexedFile& file : files) body += file.name;
  return body;
}

std::optional<std::vector<IndexedFile>> image_index_from(std::string_view body) {
  ImageIndexHeader header;
  const ImageIndexHeader expected;
  if (body.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, body.data(), sizeof header);
  body.remove_prefix(sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 ||
      header.files > body.size() / sizeof(ImageIndexEntry) ||
      header.name_bytes != body.size() - header.files * sizeof(ImageIndexEntry))
    return std::nullopt;
  std::string_view names = body.substr(header.files * sizeof(ImageIndexEntry));
  std::vector<IndexedFile> files(header.files);
  for (size_t i = 0; i < files.size(); ++i) {
    ImageIndexEntry entry;
    std::memcpy(&entry, body.data() + i * sizeof entry, sizeof entry);
    const bool is_image = entry.content == static_cast<uint32_t>(FileContent::image);
    if (entry.name_bytes > names.size() || entry.content > static_cast<uint32_t>(FileContent::other) ||
        (is_image && entry.bytes > kMaxRecordBytes))
      return std::nullopt;
    files[i] = {std::string(names.substr(0, entry.name_bytes)), entry.bytes, entry.modified, entry.crc,
                static_cast<FileContent>(entry.content)};
    names.remove_prefix(entry.name_bytes);
  }
  return names.empty() ? std::optional(std::move(files)) : std::nullopt;
}

ImageIndex index_images(const std::string& root, const std::vector<std::string>& classes, const CacheOptions& cache) {
  Indexer indexer(root, root, cache);
  indexer.list(classes);
  return indexer.complete();
}

ImageIndex index_listed(const std::string& root, const std::vector<std::string>& names, const std::string& place,
                        const CacheOptions& cache) {
  Indexer indexer(root, place, cache);
  indexer.list_files(names);
  return indexer.complete();
}

}  // namespace dtrain::data
