// FileSource: images that are files of their own, with one label or several.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/image_index.h"
#include "data/image_source.h"
#include "data/open_folder.h"

namespace dtrain::data {

class FileSource final : public ImageSource {
 public:
  // Files are named relative to `root`, or absolutely. `kind` begins the identity: "image folder"; `classes`: their
  // number, for the identity; `index`: what the index was made of, for messages.
  FileSource(const std::string& root, std::string kind, std::string index, size_t classes,
             std::vector<std::string> faults);
  // Numbers the images in the order of the calls.
  void add(const IndexedFile& file, std::span<const int64_t> labels);

  uint64_t size() const override { return entries_.size(); }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t image) const override;
  const std::vector<std::string>& faults() const override { return faults_; }
  std::string identity() const override;
  std::string contents() const override;
  int64_t label(uint64_t image) const override;
  std::vector<int64_t> labels(uint64_t image) const override;
  std::span<const std::byte> read(uint64_t image, std::vector<std::byte>& buffer) const override;

 private:
  struct Entry {
    uint64_t name, bytes;  // offset of the name in names_
    uint64_t first_label;  // in labels_
    uint32_t name_bytes, crc, labels;
  };

  std::string root_, kind_, index_;
  OpenFolder folder_;
  size_t classes_;
  std::vector<std::string> faults_;
  std::string names_;  // of all files, each with a NUL
  std::vector<int64_t> labels_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> begins_{0, 0};
  uint32_t names_crc_ = 0, contents_crc_ = 0;
};

}  // namespace dtrain::data
