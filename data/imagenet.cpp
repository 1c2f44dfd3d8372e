#include "dtrain/data/imagenet.h"

#include "data/image_source.h"
#include "data/shard_files.h"
#include "dtrain/data/example.h"

namespace dtrain::data {
namespace {

// More boxes than any image has; a million would stall the crop sampler.
constexpr size_t kMaxBoxes = 10000;

// Field indices of labelled_images.
constexpr size_t kImages = 0, kLabels = 1;

}  // namespace

BatchLayout labelled_images(const Shape& image, DType dtype) {
  return {.fields = {{.name = "images", .shape = image, .dtype = dtype},
                     {.name = "labels", .dtype = DType::i32, .padding = -1}}};
}

BatchLayout multi_labelled_images(const Shape& image, DType dtype, int64_t classes) {
  return {.fields = {{.name = "images", .shape = image, .dtype = dtype},
                     {.name = "targets", .shape = {classes}},
                     {.name = "row_weights"}}};
}

const std::vector<NormalizedBox>& BoxReader::read(const Example& example) {
  example.floats("image/object/bbox/ymin", ymin_);
  example.floats("image/object/bbox/xmin", xmin_);
  example.floats("image/object/bbox/ymax", ymax_);
  example.floats("image/object/bbox/xmax", xmax_);
  const size_t count = ymin_.size();
  if (xmin_.size() != count || ymax_.size() != count || xmax_.size() != count)
    throw Error(Fault::data, concat("lists of image/object/bbox differ in length: ", xmin_.size(), " xmin, ", count,
                                    " ymin, ", xmax_.size(), " xmax, ", ymax_.size(), " ymax"));
  if (count > kMaxBoxes) throw Error(Fault::data, concat(count, " bounding boxes, expected at most ", kMaxBoxes));
  boxes_.clear();
  for (size_t i = 0; i < count; ++i) {
    const NormalizedBox box{ymin_[i], xmin_[i], ymax_[i], xmax_[i]};
    // Also false for NaN.
    if (!(0 <= box.ymin && box.ymin <= box.ymax && box.ymax <= 1 && 0 <= box.xmin && box.xmin <= box.xmax &&
          box.xmax <= 1))
      throw Error(Fault::data, concat("bounding box ", i, " is ymin ", box.ymin, " xmin ", box.xmin, " ymax ", box.ymax,
                                      " xmax ", box.xmax, ", expected 0 <= min <= max <= 1"));
    boxes_.push_back(box);
  }
  return boxes_;
}

class ImagenetDataset::Reader final : public SampleReader {
 public:
  explicit Reader(const ImagenetDataset& dataset) : dataset_(dataset), preprocessor_(dataset.preprocessors_()) {
    DT_CHECK(preprocessor_, "image data set: the preprocessing factory returned null");
  }

  SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) override {
    parse(record, row);
    return preprocessor_->run(encoded(), boxes_.read(example_), key, row.raw(kImages));
  }

  std::optional<SampleNotes> defer(uint64_t record, const SampleKey& key, const Row& row,
                                   EncodedImage& image) override {
    parse(record, row);
    return preprocessor_->defer(encoded(), boxes_.read(example_), key, image);
  }

 private:
  void parse(uint64_t record, const Row& row) {
    example_.parse(dataset_.shards_.read(record, buffer_));
    row.span<int32_t>(kLabels)[0] = label();
  }

  std::span<const std::byte> encoded() const { return std::as_bytes(std::span(example_.bytes("image/encoded"))); }

  int32_t label() const {
    return output_of_label(example_.int64("image/class/label"), dataset_.classes_, dataset_.label_offset_,
                           "image/class/label");
  }

  const ImagenetDataset& dataset_;
  std::unique_ptr<Preprocessor> preprocessor_;
  std::vector<std::byte> buffer_;
  Example example_;
  BoxReader boxes_;
};

ImagenetDataset::ImagenetDataset(const ImagenetOptions& options, PreprocessorFactory preprocessors)
    : shards_(find_shards(options.directory, options.split), options.cache),
      classes_(options.classes),
      label_offset_(options.label_offset),
      layout_(labelled_images(preprocessors.shape, preprocessors.dtype)),
      preprocessors_(std::move(preprocessors)) {
  DT_CHECK(preprocessors_.make, "image data set without preprocessing: ", options.directory);
  DT_CHECK(classes_ > 0 && classes_ <= INT32_MAX, "image data set of ", classes_, " classes");
  DT_CHECK(label_offset_ > INT32_MIN && label_offset_ < INT32_MAX, "label offset ", label_offset_);
}

std::unique_ptr<SampleReader> ImagenetDataset::reader() const { return std::make_unique<Reader>(*this); }

}  // namespace dtrain::data
