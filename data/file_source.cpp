#include "data/file_source.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dtrain/core/error.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::data {

FileSource::FileSource(const std::string& root, std::string kind, std::string index, size_t classes,
                       std::vector<std::string> faults)
    : root_(root),
      kind_(std::move(kind)),
      index_(std::move(index)),
      folder_(root),
      classes_(classes),
      faults_(std::move(faults)) {}

void FileSource::add(const IndexedFile& file, std::span<const int64_t> labels) {
  entries_.push_back({names_.size(), file.bytes, labels_.size(), static_cast<uint32_t>(file.name.size()), file.crc,
                      static_cast<uint32_t>(labels.size())});
  names_.append(file.name.c_str(), file.name.size() + 1);
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  begins_ = {0, entries_.size()};
  const std::string line = fmt::format("{} {} {}\n", fmt::join(labels, ","), file.bytes, file.name);
  names_crc_ = crc32c(line.data(), line.size(), names_crc_);
  contents_crc_ = crc32c(&file.crc, sizeof file.crc, contents_crc_);
}

RecordLocation FileSource::locate(uint64_t image) const {
  const Entry& entry = entries_[image];
  return {.file = path_below(root_, std::string(std::string_view(names_).substr(entry.name, entry.name_bytes))),
          .record = image,
          .name = fmt::format("image {}", image)};
}

std::string FileSource::identity() const {
  return fmt::format("{}: {} images, {} classes, checksum {:08x} of names, sizes and labels\n", kind_, entries_.size(),
                     classes_, names_crc_);
}

std::string FileSource::contents() const {
  return fmt::format("{}checksum {:08x} of the contents\n", identity(), contents_crc_);
}

int64_t FileSource::label(uint64_t image) const {
  const Entry& entry = entries_[image];
  DT_CHECK(entry.labels > 0, "image ", image, " has no label");
  return labels_[entry.first_label];
}

std::vector<int64_t> FileSource::labels(uint64_t image) const {
  const auto labels = std::span(labels_).subspan(entries_[image].first_label, entries_[image].labels);
  return {labels.begin(), labels.end()};
}

std::span<const std::byte> FileSource::read(uint64_t image, std::vector<std::byte>& buffer) const {
  const Entry& entry = entries_[image];
  if (buffer.size() <= entry.bytes) buffer.resize(entry.bytes + 1);
  if (!folder_.read(names_.data() + entry.name, buffer.data(), entry.bytes))
    throw Error(Fault::data, concat("the file has changed from ", entry.bytes, " bytes since it was indexed"));
  if (const uint32_t crc = crc32c(buffer.data(), entry.bytes); crc != entry.crc)
    throw Error(Fault::data,
                fmt::format("the CRC-32C of the file is {:08x}, and {:08x} in the index: it is damaged, or was changed "
                            "with its time kept; restore it, or delete the index of {} (.dtidx)",
                            crc, entry.crc, index_));
  return {buffer.data(), entry.bytes};
}

}  // namespace dtrain::data
