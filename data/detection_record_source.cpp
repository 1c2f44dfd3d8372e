// DetectionSource of TFRecords.
#include <algorithm>
#include <map>

#include "data/detection_record.h"
#include "data/shard_files.h"
#include "dtrain/core/error.h"
#include "dtrain/data/detection_source.h"
#include "dtrain/data/record_shards.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::data {
namespace {

class RecordSource final : public DetectionSource {
 public:
  RecordSource(const std::string& directory, const std::string& split, const CacheOptions& cache,
               const std::vector<std::string>& classes)
      : shards_(find_shards(directory, split), cache) {
    const std::map<int64_t, std::string> labels = find_labels();
    if (classes.empty())
      for (const auto& [id, name] : labels) categories_.push_back({id, name});
    for (const std::string& name : classes) add_class(name, labels, directory);
    for (size_t i = 0; i < categories_.size(); ++i) classes_[categories_[i].id] = static_cast<uint32_t>(i);
  }

  std::unique_ptr<DetectionSource::Reader> reader() const override { return std::make_unique<Reader>(*this); }
  uint64_t size() const override { return shards_.size(); }
  const std::vector<coco::Category>& categories() const override { return categories_; }
  const std::vector<uint64_t>& shard_begins() const override { return shards_.begins(); }
  RecordLocation locate(uint64_t image) const override { return shards_.locate(image); }
  const std::vector<std::string>& faults() const override { return shards_.faults(); }
  std::string identity() const override { return shards_.identity(); }
  std::string contents() const override { return shards_.contents(); }
  void prefetch(uint64_t image) const override { shards_.prefetch(image); }
  bool can_prefetch() const override { return shards_.can_prefetch(); }

 private:
  class Reader final : public DetectionSource::Reader {
   public:
    explicit Reader(const RecordSource& source) : source_(source) {}
    DetectionSample read(uint64_t image, const Parts& parts) override {
      const DetectionRecord& record = parser_.read(source_.shards_.read(image, buffer_));
      objects_.clear();
      for (const DetectionRecord::Object& object : record.objects) {
        if (!parts.objects) break;
        const auto found = source_.classes_.find(object.label);
        if (found == source_.classes_.end()) continue;  // not one of the requested classes
        coco::Annotation& annotation = objects_.emplace_back();
        annotation.category = found->second;
        annotation.is_crowd = object.is_crowd;
        annotation.area = object.area;
        annotation.box = object.box;
        if (parts.masks) annotation.segmentation = segmentation_of(object, record.height, record.width);
      }
      return {.id = record.id().value_or(static_cast<int64_t>(image)),
              .name = record.filename,
              .size = {record.height, record.width},
              .encoded = record.encoded,
              .objects = objects_};
    }

   private:
    const RecordSource& source_;
    std::vector<std::byte> buffer_;
    DetectionRecordReader parser_;
    std::vector<coco::Annotation> objects_;
  };

  // All labels, each with its last name.
  std::map<int64_t, std::string> find_labels() const {
    std::map<int64_t, std::string> labels;
    DetectionRecordReader parser;
    std::vector<std::byte> buffer;
    for (uint64_t i = 0; i < shards_.size(); ++i) {
      try {
        for (const DetectionRecord::Object& object : parser.read(shards_.read(i, buffer)).objects)
          labels.insert_or_assign(object.label, std::string(object.text));
      } catch (const Error& error) {
        if (error.fault() != Fault::data) throw;  // bad records are counted when they are read
      }
    }
    return labels;
  }

  void add_class(const std::string& name, const std::map<int64_t, std::string>& labels, const std::string& directory) {
    const auto found = std::ranges::find(labels, name, [](const auto& label) { return label.second; });
    if (found != labels.end()) {
      categories_.push_back({found->first, name});
      return;
    }
    std::vector<std::string> names;
    for (const auto& label : labels) names.push_back(label.second);
    const auto close = nearest(name, names);
    throw Error(Fault::data, concat(directory, ": no object of the class '", name, "'",
                                    close ? concat("; did you mean '", *close, "'?") : std::string()));
  }

  RecordShards shards_;
  std::vector<coco::Category> categories_;
  std::map<int64_t, uint32_t> classes_;  // by label
};

}  // namespace

std::shared_ptr<const DetectionSource> open_detection_records(const std::string& directory, const std::string& split,
                                                              const CacheOptions& cache,
                                                              const std::vector<std::string>& classes) {
  return std::make_shared<RecordSource>(directory, split, cache, classes);
}

}  // namespace dtrain::data
