#include "data/coco_categories.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

constexpr std::array<int64_t, 80> kIds = {
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 28, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59,
    60, 61, 62, 63, 64, 65, 67, 70, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 84, 85, 86, 87, 88, 89, 90};

class CocoClasses final : public DetectionSource {
 public:
  CocoClasses(std::shared_ptr<const DetectionSource> source, const std::string& where)
      : source_(std::move(source)), classes_(places_in_coco(source_->categories(), where)) {
    for (const int64_t id : kIds) categories_.push_back({id, {}});
    for (size_t i = 0; i < classes_.size(); ++i) categories_[classes_[i]].name = source_->categories()[i].name;
  }

  std::unique_ptr<DetectionSource::Reader> reader() const override { return std::make_unique<Reader>(*this); }
  uint64_t size() const override { return source_->size(); }
  const std::vector<coco::Category>& categories() const override { return categories_; }
  const std::vector<uint64_t>& shard_begins() const override { return source_->shard_begins(); }
  RecordLocation locate(uint64_t image) const override { return source_->locate(image); }
  const std::vector<std::string>& faults() const override { return source_->faults(); }
  std::vector<std::string> notices() const override { return source_->notices(); }
  std::string identity() const override { return source_->identity(); }
  std::string contents() const override { return source_->contents(); }

 private:
  class Reader final : public DetectionSource::Reader {
   public:
    explicit Reader(const CocoClasses& source) : source_(source), reader_(source.source_->reader()) {}
    DetectionSample read(uint64_t image, const Parts& parts) override {
      DetectionSample sample = reader_->read(image, parts);
      objects_.assign(sample.objects.begin(), sample.objects.end());
      for (coco::Annotation& object : objects_) object.category = source_.classes_[object.category];
      sample.objects = objects_;
      return sample;
    }

   private:
    const CocoClasses& source_;
    std::unique_ptr<DetectionSource::Reader> reader_;
    std::vector<coco::Annotation> objects_;
  };

  std::shared_ptr<const DetectionSource> source_;
  std::vector<uint32_t> classes_;  // by category of the source
  std::vector<coco::Category> categories_;
};

}  // namespace

std::span<const int64_t> coco_category_ids() { return kIds; }

std::vector<uint32_t> places_in_coco(const std::vector<coco::Category>& categories, const std::string& where) {
  std::vector<uint32_t> places;
  for (const coco::Category& category : categories) {
    const auto found = std::ranges::lower_bound(kIds, category.id);
    if (found == kIds.end() || *found != category.id)
      throw Error(Fault::data, concat(where, ": category ", category.id, " (", category.name,
                                      "), expected one of COCO's 80, which are from 1 to 90"));
    places.push_back(static_cast<uint32_t>(found - kIds.begin()));
  }
  return places;
}

std::shared_ptr<const DetectionSource> with_coco_classes(std::shared_ptr<const DetectionSource> source,
                                                         const std::string& where) {
  return std::make_shared<CocoClasses>(std::move(source), where);
}

coco::Annotations annotations_of(const DetectionSource& source) {
  coco::Annotations all;
  all.categories = source.categories();
  std::vector<std::vector<coco::Annotation>> objects;  // per image, in the order of the source
  const auto reader = source.reader();
  for (uint64_t i = 0; i < source.size(); ++i) {
    const DetectionSample sample = reader->read(i, {.bytes = false, .masks = false});
    all.images.push_back({.id = sample.id,
                          .file_name = std::string(sample.name),
                          .width = sample.size.width,
                          .height = sample.size.height});
    objects.emplace_back(sample.objects.begin(), sample.objects.end());
  }
  std::vector<uint32_t> order(all.images.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return all.images[i].id; });
  std::vector<coco::AnnotatedImage> images;
  for (const uint32_t place : order) {
    if (!images.empty() && images.back().id == all.images[place].id)
      throw Error(Fault::data, concat(source.locate(place).file, ": two images have the id ", images.back().id));
    for (coco::Annotation& object : objects[place]) {
      object.id = static_cast<int64_t>(all.annotations.size()) + 1;
      object.image = static_cast<uint32_t>(images.size());
      all.annotations.push_back(std::move(object));
    }
    images.push_back(std::move(all.images[place]));
    all.begins.push_back(all.annotations.size());
  }
  all.images = std::move(images);
  return all;
}

}  // namespace dtrain::data
