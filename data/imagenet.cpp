#include "data/imagenet.h"

#include "data/example.h"

namespace dtrain::data {
namespace {

// Far beyond any image; a record of a million boxes would stall the sampler of crops.
constexpr size_t kMaxBoxes = 10000;

// The four lists of one record, kept from record to record.
struct BoxLists {
  std::vector<float> ymin, xmin, ymax, xmax;
  std::vector<Box> boxes;

  // Throws Error(Fault::data) where the lists disagree or a box is not one.
  const std::vector<Box>& read(const Example& example) {
    example.floats("image/object/bbox/ymin", ymin);
    example.floats("image/object/bbox/xmin", xmin);
    example.floats("image/object/bbox/ymax", ymax);
    example.floats("image/object/bbox/xmax", xmax);
    const size_t count = ymin.size();
    if (xmin.size() != count || ymax.size() != count || xmax.size() != count)
      throw Error(Fault::data, concat("lists of image/object/bbox differ in length: ", xmin.size(), " xmin, ", count,
                                      " ymin, ", xmax.size(), " xmax, ", ymax.size(), " ymax"));
    if (count > kMaxBoxes) throw Error(Fault::data, concat(count, " bounding boxes, expected at most ", kMaxBoxes));
    boxes.clear();
    for (size_t i = 0; i < count; ++i) {
      // Written so that a NaN fails too.
      if (!(0 <= ymin[i] && ymin[i] <= ymax[i] && ymax[i] <= 1 && 0 <= xmin[i] && xmin[i] <= xmax[i] && xmax[i] <= 1))
        throw Error(Fault::data, concat("bounding box ", i, " is ymin ", ymin[i], " xmin ", xmin[i], " ymax ", ymax[i],
                                        " xmax ", xmax[i], ", expected 0 <= min <= max <= 1"));
      boxes.push_back({ymin[i], xmin[i], ymax[i], xmax[i]});
    }
    return boxes;
  }
};

}  // namespace

class ImagenetDataset::Reader final : public SampleReader {
 public:
  explicit Reader(const ImagenetDataset& dataset) : dataset_(dataset), preprocess_(dataset.make_preprocess_()) {}

  Sample read(uint64_t record, const SampleKey& key, void* pixels) override {
    example_.parse(dataset_.shards_.read(record, buffer_));
    Sample sample;
    sample.label = label();
    const std::vector<Box>& boxes = boxes_.read(example_);
    sample.damaged = preprocess_(std::as_bytes(std::span(example_.bytes("image/encoded"))), boxes, key, pixels);
    return sample;
  }

 private:
  int32_t label() const {
    const int64_t stored = example_.int64("image/class/label");
    const int64_t first = -dataset_.label_offset_, last = first + dataset_.classes_ - 1;
    if (stored < first || stored > last)
      throw Error(Fault::data, concat("image/class/label is ", stored, ", expected ", first, " to ", last, " (",
                                      dataset_.classes_, " classes, label offset ", dataset_.label_offset_, ")"));
    return static_cast<int32_t>(stored - first);
  }

  const ImagenetDataset& dataset_;
  Preprocess preprocess_;
  std::vector<std::byte> buffer_;
  Example example_;
  BoxLists boxes_;
};

ImagenetDataset::ImagenetDataset(const ImagenetOptions& options, MakePreprocess make_preprocess)
    : shards_(find_shards(options.directory, options.split), options.cache_directory),
      classes_(options.classes),
      label_offset_(options.label_offset),
      make_preprocess_(std::move(make_preprocess)) {
  DT_CHECK(classes_ > 0 && classes_ <= INT32_MAX, "a data set of ", classes_, " classes");
  DT_CHECK(label_offset_ > INT32_MIN && label_offset_ < INT32_MAX, "label offset ", label_offset_);
}

std::unique_ptr<SampleReader> ImagenetDataset::reader() const { return std::make_unique<Reader>(*this); }

}  // namespace dtrain::data
