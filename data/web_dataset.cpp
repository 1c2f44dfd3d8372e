#include "data/web_dataset.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "data/brace_pattern.h"
#include "data/image_folder.h"
#include "data/image_tree.h"
#include "data/open_files.h"
#include "data/parallel.h"
#include "data/shard_files.h"
#include "data/tar_samples.h"
#include "dtrain/core/error.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

bool is_pattern(const std::string& data) {
  std::error_code unknown;
  return data.ends_with(".tar") && !fs::is_directory(data, unknown);
}

// Sorted paths of .tar files in a folder.
std::vector<std::string> tars_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : names_in_folder(folder))
    if (name.ends_with(".tar") && !is_left_out(name)) paths.push_back((fs::path(folder) / name).string());
  return paths;
}

// Split that a word of the file name tells, else "".
std::string split_of_name(const std::string& path) {
  const std::string name = fs::path(path).stem().string();
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (size_t begin = 0; begin < name.size();) {
    size_t end = begin;
    while (end < name.size() && is_letter(name[end])) ++end;
    if (const std::string split = split_of_folder(name.substr(begin, end - begin)); !split.empty()) return split;
    begin = end + 1;
  }
  return "";
}

std::vector<std::string> of_split(const std::vector<std::string>& paths, const std::string& split) {
  std::vector<std::string> found;
  std::ranges::copy_if(paths, std::back_inserter(found),
                       [&](const std::string& path) { return split_of_name(path) == split; });
  return found;
}

// Archives below the prefix of a split.
std::vector<std::string> tars_in_split_prefix(const std::string& prefix, const std::string& split) {
  std::vector<std::string> found;
  std::string first;
  for (const std::string& name : names_in_folder(prefix)) {
    if (split_of_folder(name) != split) continue;
    std::vector<std::string> tars = tars_in((fs::path(prefix) / name).string());
    if (tars.empty()) continue;
    if (!found.empty())
      throw Error(Fault::data, concat(prefix, ": two folders of one split, ", first, " and ", name, "; keep one"));
    found = std::move(tars);
    first = name;
  }
  return found;
}

// Archives in the folders of splits.
std::vector<std::string> tars_in_split_folder(const std::string& directory, bool training) {
  if (is_remote(directory)) {
    if (training) return tars_in_split_prefix(directory, "train");
    const std::vector<std::string> validation = tars_in_split_prefix(directory, "validation");
    return validation.empty() ? tars_in_split_prefix(directory, "test") : validation;
  }
  const std::string folder = split_folder(directory, training);
  return folder.empty() ? std::vector<std::string>{} : tars_in(folder);
}

class TarSource final : public ImageSource {
 public:
  TarSource(const std::vector<std::string>& paths, const CacheOptions& cache) : tars_(paths.size()) {
    // Remote files share connections and take no file descriptors.
    const auto local_files = static_cast<size_t>(std::ranges::count_if(paths, std::not_fn(is_remote)));
    const bool keep = can_keep_open(local_files);
    is_remote_ = local_files < paths.size();
    std::mutex mutex;
    uint64_t opened = 0;
    for_each_in_parallel(paths.size(), [&](size_t i) {
      if (cache.stop && cache.stop()) throw Error(Fault::resource, "a stop was requested while data was opened");
      Tar& tar = tars_[i];
      tar.path = paths[i];
      auto file = std::make_unique<InputFile>(paths[i]);
      tar.bytes = file->size();
      tar.found = open_tar_samples(*file, cache.directory);
      if (keep) tar.file = std::move(file);
      if (!cache.progress) return;
      const std::lock_guard lock(mutex);
      cache.progress(++opened, paths.size());
    });
    for (Tar& tar : tars_) {
      begins_.push_back(begins_.back() + tar.found.samples.size());
      std::ranges::move(tar.found.faults, std::back_inserter(faults_));
    }
  }

  uint64_t size() const override { return begins_.back(); }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  const std::vector<std::string>& faults() const override { return faults_; }
  int64_t label(uint64_t image) const override { return sample(image).label; }

  RecordLocation locate(uint64_t image) const override {
    const TarSample& one = sample(image);
    return {.file = shown_path(tar_of(image).path),
            .offset = one.offset,
            .record = image - begins_[static_cast<size_t>(&tar_of(image) - tars_.data())],
            .name = fmt::format("sample {} at byte {}", one.key, one.offset)};
  }

  std::string identity() const override {
    std::string lines;
    for (const Tar& tar : tars_) {
      uint32_t crc = 0;
      for (const TarSample& one : tar.found.samples) {
        const std::string line = fmt::format("{} {}\n", one.label, one.key);
        crc = crc32c(line.data(), line.size(), crc);
      }
      lines += fmt::format("{} {} bytes, checksum {:08x} of keys and labels\n", name_of(tar), tar.bytes, crc);
    }
    return lines;
  }

  std::string contents() const override {
    std::string lines;
    for (const Tar& tar : tars_) {
      uint32_t crc = 0;
      for (const TarSample& one : tar.found.samples) {
        const std::string line = fmt::format("{} {} {} {}\n", one.key, one.label, one.bytes, one.crc);
        crc = crc32c(line.data(), line.size(), crc);
      }
      lines += fmt::format("{}: {} bytes, {} samples, checksum {:08x}\n", name_of(tar), tar.bytes,
                           tar.found.samples.size(), crc);
    }
    return lines;
  }

  std::span<const std::byte> read(uint64_t image, std::vector<std::byte>& buffer) const override {
    const Tar& tar = tar_of(image);
    const TarSample& one = sample(image);
    if (buffer.size() < one.bytes) buffer.resize(one.bytes);
    if (tar.file)
      tar.file->read(one.offset, buffer.data(), one.bytes);
    else
      InputFile(tar.path).read(one.offset, buffer.data(), one.bytes);
    if (crc32c(buffer.data(), one.bytes) != one.crc)
      throw Error(Fault::data,
                  "the CRC-32C of the image is not that of the index: the archive is damaged or was changed");
    return {buffer.data(), one.bytes};
  }

  void prefetch(uint64_t image) const override {
    const TarSample& one = sample(image);
    if (const Tar& tar = tar_of(image); tar.file) tar.file->prefetch(one.offset, one.bytes);
  }
  bool can_prefetch() const override { return is_remote_; }

  std::vector<std::string> notices() const {
    uint64_t without_image = 0, links = 0;
    for (const Tar& tar : tars_) {
      without_image += tar.found.without_image;
      links += tar.found.links;
    }
    std::vector<std::string> lines{fmt::format("{}: {} samples in {} archives",
                                               directory_of(shown_path(tars_.front().path)), size(), tars_.size())};
    if (without_image > 0) lines.push_back(fmt::format("left out {} samples without an image", without_image));
    if (links > 0)
      lines.push_back(
          fmt::format("left out {} links, with the images that they stand for; make the archives with "
                      "tar --hard-dereference --dereference",
                      links));
    return lines;
  }

 private:
  struct Tar {
    std::string path;
    uint64_t bytes = 0;               // when opened
    std::unique_ptr<InputFile> file;  // null if too many files are open
    TarSamples found;
  };
  static std::string name_of(const Tar& tar) { return fs::path(shown_path(tar.path)).filename().string(); }
  const Tar& tar_of(uint64_t image) const {
    DT_CHECK(image < size(), "image ", image, " of a data set of ", size());
    return tars_[static_cast<size_t>(std::ranges::upper_bound(begins_, image) - begins_.begin() - 1)];
  }
  const TarSample& sample(uint64_t image) const {
    const Tar& tar = tar_of(image);
    return tar.found.samples[image - begins_[static_cast<size_t>(&tar - tars_.data())]];
  }

  std::vector<Tar> tars_;
  bool is_remote_ = false;
  std::vector<uint64_t> begins_{0};
  std::vector<std::string> faults_;
};

}  // namespace

bool has_tars(const std::string& data) {
  if (data.empty()) return false;
  if (is_pattern(data)) return true;
  try {
    if (has_shards(data, "train") || has_shards(data, "validation") || has_image_folders(data)) return false;
    return !tars_in(data).empty() || !tars_in_split_folder(data, true).empty() ||
           !tars_in_split_folder(data, false).empty();
  } catch (const Error& error) {  // opening the data reports other errors
    if (error.fault() == Fault::resource) throw;
    return false;
  }
}

bool has_tars_of_one_split(const std::string& data) {
  if (is_pattern(data)) return true;
  if (!tars_in_split_folder(data, true).empty() || !tars_in_split_folder(data, false).empty()) return false;
  return std::ranges::all_of(tars_in(data), [](const std::string& path) { return split_of_name(path).empty(); });
}

std::vector<std::string> find_tars(const std::string& data, bool training) {
  if (is_pattern(data)) return expand_braces(data);
  std::vector<std::string> paths = tars_in_split_folder(data, training);
  if (paths.empty() && has_tars_of_one_split(data)) paths = tars_in(data);
  if (paths.empty()) paths = of_split(tars_in(data), training ? "train" : "validation");
  if (paths.empty() && !training) paths = of_split(tars_in(data), "test");
  if (paths.empty())
    throw Error(Fault::data, fmt::format("{0}: no .tar files of {1}; expected {0}/{1}/*.tar or names with the word {1}",
                                         data, training ? "train" : "validation"));
  return paths;
}

std::unique_ptr<const ImageSource> open_web_dataset(const TarOptions& options) {
  const std::vector<std::string> paths = find_tars(options.data, options.training);
  auto source = std::make_unique<TarSource>(paths, options.cache);
  if (source->size() == 0 && source->faults().empty())
    throw Error(Fault::data,
                concat(shown_path(paths.front()), ": no samples KEY.jpg with KEY.cls in the archives; ImageNet's own ",
                       "archives are converted by dtrain-data imagenet"));
  if (options.notice)
    for (const std::string& line : source->notices()) options.notice(line);
  return source;
}

}  // namespace dtrain::data
