// DetectionSource of a data set in the format of an annotation tool.
#include <filesystem>
#include <memory>
#include <span>

#include "data/annotations/label_set.h"
#include "data/annotations/labelme.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::data::annotations {
namespace {

class LabelSource final : public DetectionSource {
 public:
  LabelSource(const std::string& folder, LabelledSplit split)
      : folder_(folder), split_(std::move(split)), begins_{0, split_.annotations.images.size()} {}

  std::unique_ptr<DetectionSource::Reader> reader() const override { return std::make_unique<Reader>(*this); }
  uint64_t size() const override { return split_.annotations.images.size(); }
  const std::vector<coco::Category>& categories() const override { return split_.annotations.categories; }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t image) const override {
    DT_CHECK(image < size(), "image ", image, " of ", size());
    const coco::AnnotatedImage& at = split_.annotations.images[image];
    return {split_.where, 0, static_cast<uint64_t>(at.id), "image " + at.file_name};
  }
  std::string file_of(uint64_t image) const override {
    const std::string& embedded = split_.embedded[image];
    return (std::filesystem::path(folder_) / (embedded.empty() ? split_.annotations.images[image].file_name : embedded))
        .string();
  }
  const std::vector<std::string>& faults() const override { return faults_; }
  std::vector<BadRecord> unusable() const override { return split_.unusable; }
  std::vector<std::string> notices() const override {
    if (split_.annotations.findings.all().empty()) return {};
    return {concat(split_.where, ": ", split_.annotations.findings.summary())};
  }
  std::string identity() const override { return concat(split_.where, ": ", size(), " images\n"); }
  std::string contents() const override { return identity(); }

 private:
  class Reader final : public DetectionSource::Reader {
   public:
    explicit Reader(const LabelSource& source) : source_(source) {}
    DetectionSample read(uint64_t image, const Parts& parts) override {
      DT_CHECK(image < source_.size(), "image ", image, " of ", source_.size());
      const coco::AnnotatedImage& listed = source_.split_.annotations.images[image];
      if (parts.bytes) {
        const std::string path = source_.file_of(image);
        bytes_ = source_.split_.embedded[image].empty() ? read_text(path, kMaxRecordBytes) : embedded_image(path);
      }
      return {.id = listed.id,
              .name = listed.file_name,
              .size = {listed.height, listed.width},
              .encoded = parts.bytes ? std::as_bytes(std::span(bytes_)) : std::span<const std::byte>(),
              .objects = parts.objects ? source_.split_.annotations.of(image) : std::span<const coco::Annotation>()};
    }

   private:
    const LabelSource& source_;
    std::string bytes_;
  };

  std::string folder_;
  LabelledSplit split_;
  std::vector<uint64_t> begins_;
  std::vector<std::string> faults_;  // always empty: the files are parsed completely
};

}  // namespace

std::shared_ptr<const DetectionSource> open_labels(const std::string& folder, LabelledSplit split) {
  return std::make_shared<LabelSource>(folder, std::move(split));
}

}  // namespace dtrain::data::annotations
