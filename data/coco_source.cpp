// DetectionSource of a COCO JSON file and an image folder.
#include <filesystem>
#include <iomanip>
#include <sstream>

#include "data/coco_images.h"
#include "dtrain/core/error.h"
#include "dtrain/data/detection_source.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::data {
namespace {

class CocoSource final : public DetectionSource {
 public:
  CocoSource(const std::string& annotations, const std::string& folder, const coco::AnnotationOptions& options)
      : path_(annotations),
        folder_(folder),
        annotations_(coco::read_annotations(annotations, options)),
        begins_{0, annotations_.images.size()} {
    const InputFile file(annotations);
    std::ostringstream line;
    line << std::filesystem::path(annotations).filename().string() << ": " << file.size() << " bytes, "
         << annotations_.images.size() << " images, checksum " << std::hex << std::setw(8) << std::setfill('0')
         << crc32c_of(file) << '\n';
    identity_ = line.str();
  }

  std::unique_ptr<DetectionSource::Reader> reader() const override { return std::make_unique<Reader>(*this); }
  uint64_t size() const override { return annotations_.images.size(); }
  const std::vector<coco::Category>& categories() const override { return annotations_.categories; }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t image) const override {
    DT_CHECK(image < size(), "image ", image, " of ", size());
    const coco::AnnotatedImage& at = annotations_.images[image];
    return {path_, 0, static_cast<uint64_t>(at.id),
            concat("image ", at.id_text.empty() ? std::to_string(at.id) : at.id_text)};
  }
  std::string file_of(uint64_t image) const override {
    return (std::filesystem::path(folder_) / annotations_.images[image].file_name).string();
  }
  const std::vector<std::string>& faults() const override { return faults_; }
  std::vector<BadRecord> unusable() const override {
    std::vector<BadRecord> all;
    for (const coco::UnusableImage& image : annotations_.unusable)
      all.push_back(BadRecordError(concat(folder_, "/", image.name), image.reason).record());
    return all;
  }
  std::vector<std::string> notices() const override {
    if (annotations_.findings.all().empty()) return {};
    return {concat(path_, ": ", annotations_.findings.summary())};
  }
  std::string identity() const override { return identity_; }
  std::string contents() const override { return identity_; }

 private:
  class Reader final : public DetectionSource::Reader {
   public:
    explicit Reader(const CocoSource& source) : source_(source) {}
    DetectionSample read(uint64_t image, const Parts& parts) override {
      DT_CHECK(image < source_.size(), "image ", image, " of ", source_.size());
      const coco::AnnotatedImage& listed = source_.annotations_.images[image];
      if (parts.bytes) bytes_ = read_text(source_.file_of(image), kMaxRecordBytes);
      return {.id = listed.id,
              .id_text = listed.id_text,
              .name = listed.file_name,
              .size = {listed.height, listed.width},
              .encoded = parts.bytes ? std::as_bytes(std::span(bytes_)) : std::span<const std::byte>(),
              .objects = parts.objects ? source_.annotations_.of(image) : std::span<const coco::Annotation>()};
    }

   private:
    const CocoSource& source_;
    std::string bytes_;
  };

  std::string path_, folder_;
  coco::Annotations annotations_;
  std::vector<uint64_t> begins_;
  std::vector<std::string> faults_;  // always empty: the file is parsed completely
  std::string identity_;
};

}  // namespace

std::shared_ptr<const DetectionSource> open_coco(const std::string& annotations, const std::string& folder,
                                                 coco::AnnotationOptions options) {
  options.complete = complete_from(folder);
  return std::make_shared<CocoSource>(annotations, folder, options);
}

}  // namespace dtrain::data
