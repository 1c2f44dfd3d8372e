#include "dtrain/data/detection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <type_traits>

#include "data/color.h"
#include "data/detection_masks.h"
#include "data/object_crop.h"
#include "dtrain/core/error.h"
#include "dtrain/data/resize.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::data {
namespace {

using Fields = DetectionFields;

// Elements per row: pixel indices have 32 bits.
constexpr int64_t kMaxEntries = int64_t{1} << 30;

template <class Level>
Level level_of(float value) {
  if constexpr (std::is_same_v<Level, uint8_t>)
    return static_cast<uint8_t>(std::lrint(value));
  else
    return value;
}

bool is_kept(const coco::Annotation& object, const ImageSize& image, double min_area) {
  const coco::BoundingBox box = clipped(object.box, image);
  return !object.is_crowd && object.area > min_area && box.width > 0 && box.height > 0;
}

BatchLayout layout_on(const ImageSize& canvas, DType pixels, int64_t boxes, int64_t runs) {
  return {.variant = concat(canvas.height, "x", canvas.width),
          .fields = {{.name = "images", .shape = {canvas.height, canvas.width, 3}, .dtype = pixels},
                     {.name = "sizes", .shape = {2}},
                     {.name = "originals", .shape = {2}},
                     {.name = "image_ids", .dtype = DType::i64, .padding = -1},
                     {.name = "count", .dtype = DType::i32},
                     {.name = "boxes", .shape = {boxes, 4}, .count = "count"},
                     {.name = "classes", .shape = {boxes}, .dtype = DType::i32, .count = "count"},
                     {.name = "run_begins", .shape = {boxes + 1}, .dtype = DType::i32},
                     {.name = "run_count", .dtype = DType::i32},
                     {.name = "run_ends", .shape = {runs}, .dtype = DType::i32, .count = "run_count"}}};
}

void check_room(size_t found, int64_t room, const char* what, const char* option) {
  if (found > static_cast<size_t>(room))
    throw Error(Fault::data, concat(found, " ", what, ", more than ", option, " = ", room));
}

// Region of the file's image that becomes the sample.
struct Part {
  Window window{};
  std::optional<ObjectCrop> crop{};  // of SSD's sampler
};

BoxFractions fractions_of(const coco::BoundingBox& box, const ImageSize& image) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  return {static_cast<float>(box.x / width), static_cast<float>(box.y / height),
          static_cast<float>((box.x + box.width) / width), static_cast<float>((box.y + box.height) / height)};
}

// Corners of a box after resizing; box and `from` are relative to the crop.
std::array<float, 4> corners_in(const BoxFractions& box, const Placement& placement) {
  const auto width = static_cast<float>(placement.to.width), height = static_cast<float>(placement.to.height);
  const float left = placement.flip ? 1 - box[2] : box[0], right = placement.flip ? 1 - box[0] : box[2];
  return {left * width, box[1] * height, right * width, box[3] * height};
}

}  // namespace

void DetectionDatasetOptions::check() const {
  resize.check();
  DT_CHECK(
      !stretch || (stretch->height > 0 && stretch->width > 0 && stretch->height <= kMaxEntries / 3 / stretch->width),
      "images stretched to ", stretch->width, "x", stretch->height, " pixels");
  DT_CHECK(!object_crops || (stretch && !masks), "object_crops needs stretch and no masks");
  DT_CHECK(multiple > 0, "canvases in multiples of ", multiple, " pixels: expected at least 1");
  for (const ImageSize& canvas : canvases)
    DT_CHECK(canvas.height > 0 && canvas.width > 0 && canvas.height <= kMaxEntries / 3 / canvas.width, "a canvas of ",
             canvas.width, "x", canvas.height, " pixels");
  DT_CHECK(flip_probability >= 0 && flip_probability <= 1, "flip probability ", flip_probability, ": expected 0 to 1");
  DT_CHECK(jitter.brightness >= 0 && jitter.brightness <= 1 && jitter.contrast >= 0 && jitter.contrast <= 1 &&
               jitter.saturation >= 0 && jitter.saturation <= 1 && jitter.hue >= 0 && jitter.hue <= 0.5f,
           "colour jitter of ", jitter.brightness, ", ", jitter.contrast, ", ", jitter.saturation, " and ", jitter.hue,
           ": expected 0 to 1, the hue 0 to 0.5");
  DT_CHECK(max_boxes >= 0 && max_boxes <= kMaxEntries && max_runs >= 0 && max_runs <= kMaxEntries, "capacity for ",
           max_boxes, " boxes and ", max_runs, " runs");
}

DetectionDataset::DetectionDataset(std::shared_ptr<const DetectionSource> source,
                                   const DetectionDatasetOptions& options)
    : source_(std::move(source)), options_(options) {
  DT_CHECK(source_, "a data set of images without a source");
  options_.check();
  const std::vector<ImageSize> canvases = options_.stretch ? std::vector{*options_.stretch}
                                          : options_.canvases.empty()
                                              ? automatic_canvases(options_.resize, options_.multiple)
                                              : options_.canvases;
  survey(canvases);
  make_layouts(canvases);
}

// Selects images, assigns canvases and computes the capacity for objects.
void DetectionDataset::survey(const std::vector<ImageSize>& canvases) {
  uint64_t most_objects = 1, most_mask_runs = 1;
  const auto reader = source_->reader();
  const DetectionSource::Parts parts{
      .bytes = false, .objects = options_.training, .masks = options_.masks && options_.max_runs == 0};
  for (uint64_t image = 0; image < source_->size(); ++image) {
    uint64_t objects = 0, runs = 0;
    Record record{image, 0};
    try {
      const DetectionSample sample = reader->read(image, parts);
      if (!options_.stretch) record.layout = static_cast<uint32_t>(canvas_of(sample.size, options_.resize, canvases));
      const ImageSize largest =
          options_.stretch ? *options_.stretch : resized(sample.size, options_.resize.max_short_edge, options_.resize);
      for (const coco::Annotation& object : sample.objects) {
        if (!is_kept(object, sample.size, options_.min_area)) continue;
        ++objects;
        if (!parts.masks) continue;
        runs += most_runs(object, {sample.size, largest, false, !options_.rounds_pixels()});
        if (object.segmentation.index() == 0 && without_mask_++ == 0)
          first_without_mask_ = source_->locate(image).text();
      }
      if (options_.training && !options_.keep_empty && objects == 0) continue;
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;  // bad records are counted when they are read
    }
    most_objects = std::max(most_objects, objects);
    most_mask_runs = std::max(most_mask_runs, runs);
    records_.push_back(record);
  }
  const auto room = [](int64_t given, uint64_t needed) { return given ? given : static_cast<int64_t>(needed); };
  max_boxes_ = options_.training ? room(options_.max_boxes, most_objects) : 1;
  max_runs_ = options_.training ? room(options_.max_runs, most_mask_runs) : 1;
  for (const uint64_t begin : source_->shard_begins())
    shard_begins_.push_back(
        static_cast<uint64_t>(std::ranges::lower_bound(records_, begin, {}, &Record::image) - records_.begin()));
}

// Canvases without images have no layout.
void DetectionDataset::make_layouts(const std::vector<ImageSize>& canvases) {
  const DType pixels = options_.rounds_pixels() ? DType::u8 : DType::f32;
  std::vector<uint32_t> number(canvases.size(), UINT32_MAX);
  for (const Record& record : records_) number[record.layout] = 0;
  for (size_t i = 0; i < canvases.size(); ++i) {
    if (number[i] == UINT32_MAX) continue;
    number[i] = static_cast<uint32_t>(layouts_.size());
    layouts_.push_back(layout_on(canvases[i], pixels, max_boxes_, max_runs_));
  }
  if (layouts_.empty()) layouts_.push_back(layout_on(canvases.front(), pixels, max_boxes_, max_runs_));
  for (Record& record : records_) record.layout = number[record.layout];
}

std::string DetectionDataset::notice_of_masks() const {
  if (without_mask_ == 0) return {};
  return concat("objects without a mask, from which no mask is learnt: ", without_mask_,
                " (first: ", first_without_mask_, ")");
}

std::vector<std::string> DetectionDataset::missing_files() const {
  std::map<std::string, std::vector<std::string>> listed;  // names in remote folders: a list costs fewer requests
  const auto is_there = [&](const std::string& file) {
    std::error_code failure;
    if (!is_remote(file)) return std::filesystem::exists(file, failure);
    if (!file.starts_with("s3://")) return true;  // web servers have no lists
    const size_t slash = file.rfind('/');
    const std::string folder = file.substr(0, slash);
    const auto [found, is_new] = listed.emplace(folder, std::vector<std::string>());
    if (is_new) found->second = names_in_folder(folder);
    return std::ranges::binary_search(found->second, file.substr(slash + 1));
  };
  std::vector<std::string> missing;
  for (const Record& record : records_)
    if (const std::string file = source_->file_of(record.image); !file.empty() && !is_there(file))
      missing.push_back(file);
  return missing;
}

std::string DetectionDataset::used() const { return concat(size(), " of ", source_->size(), " images\n"); }
std::string DetectionDataset::identity() const { return source_->identity() + used(); }
std::string DetectionDataset::contents() const { return source_->contents() + used(); }

class DetectionDataset::Reader final : public SampleReader {
 public:
  explicit Reader(const DetectionDataset& dataset)
      : dataset_(dataset),
        options_(dataset.options_),
        source_(dataset.source_->reader()),
        decoder_(dataset.options_.decoding) {}

  SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) override {
    const DetectionSample sample = source_->read(
        dataset_.records_[record].image, {.bytes = true, .objects = options_.training, .masks = options_.masks});
    try {
      SampleNotes notes = make(sample, dataset_.layouts_[dataset_.layout_of(record)], key, row);
      if (!notes.damage.empty()) notes.damage = concat("image ", sample.name, ": ", notes.damage);
      return notes;
    } catch (const Error& error) {
      throw Error(error.fault(), concat("image ", sample.name, ": ", error.what()));
    }
  }

 private:
  SampleNotes make(const DetectionSample& sample, const BatchLayout& layout, const SampleKey& key, const Row& row) {
    const auto [info, orientation] = open_as_annotated(sample);
    RandomStream random = sample_stream(key);
    find_objects(sample);
    const Part part = part_of(sample.size, random);
    const Placement placement = place({part.window.height, part.window.width}, random);
    const Shape& canvas = layout.fields[Fields::images].shape;
    if (options_.rounds_pixels())
      write_pixels(part.window, placement, canvas, random, row.span<uint8_t>(Fields::images));
    else
      write_pixels(part.window, placement, canvas, random, row.span<float>(Fields::images));
    const ImageSize& to = placement.to;
    std::ranges::copy(std::array{static_cast<float>(to.height), static_cast<float>(to.width)},
                      row.span<float>(Fields::sizes).begin());
    std::ranges::copy(std::array{static_cast<float>(info.height), static_cast<float>(info.width)},
                      row.span<float>(Fields::originals).begin());
    row.span<int64_t>(Fields::image_ids)[0] = sample.id;
    if (part.crop)
      place_objects(*part.crop, placement);
    else
      place_objects(sample.size, placement);
    write_objects(row);
    return notes_of(info, decoder_, orientation);
  }

  struct Opened {
    ImageInfo info;
    Orientation orientation;  // rule used for opening
  };
  // Annotations that state the stored size refer to the stored orientation.
  Opened open_as_annotated(const DetectionSample& sample) {
    const ImageInfo info = decoder_.open(sample.encoded);
    const ImageSize size{info.height, info.width}, turned{info.width, info.height};
    if (size == sample.size) return {info, options_.decoding.orientation};
    const bool transposes = info.orientation >= 5 && turned == sample.size;
    if (transposes && options_.decoding.orientation == Orientation::apply)
      return {decoder_.open(sample.encoded, Orientation::ignore), Orientation::ignore};
    throw Error(Fault::data, concat("is ", info.width, "x", info.height, " pixels large, its annotations are for ",
                                    sample.size.width, "x", sample.size.height,
                                    transposes ? concat("; its EXIF orientation is ", info.orientation,
                                                        ": --exif_orientation=apply turns it")
                                               : ""));
  }

  void find_objects(const DetectionSample& sample) {
    objects_.clear();
    for (const coco::Annotation& object : sample.objects)
      if (is_kept(object, sample.size, options_.min_area)) objects_.push_back(&object);
  }

  Part part_of(const ImageSize& image, RandomStream& random) {
    const auto width = static_cast<int>(image.width), height = static_cast<int>(image.height);
    if (!options_.training || !options_.object_crops || objects_.empty()) return {{0, 0, width, height}};
    fractions_.clear();
    for (const coco::Annotation* object : objects_)
      fractions_.push_back(fractions_of(clipped(object->box, image), image));
    ObjectCrop crop = sample_object_crop(fractions_, random);
    const Window window = crop.window(width, height);
    return {window, std::move(crop)};
  }

  Placement place(const ImageSize& image, RandomStream& random) const {
    const ResizeRule& rule = options_.resize;
    if (options_.stretch) {
      const bool flip = options_.training && random.uniform() < options_.flip_probability;
      return {image, *options_.stretch, flip};
    }
    const bool resizes_masks = !options_.rounds_pixels();
    if (!options_.training) return {image, resized(image, rule.max_short_edge, rule), false, resizes_masks};
    const auto edges = static_cast<uint32_t>(rule.max_short_edge - rule.min_short_edge + 1);
    const int64_t edge = rule.min_short_edge + random.below(edges);
    return {image, resized(image, edge, rule), random.uniform() < options_.flip_probability, resizes_masks};
  }

  template <class Level>
  void write_pixels(const Window& window, const Placement& placement, const Shape& canvas, RandomStream& random,
                    std::span<Level> pixels) {
    const auto width = static_cast<int>(placement.to.width), height = static_cast<int>(placement.to.height);
    const Coordinates coordinates = options_.rounds_pixels() ? Coordinates::f64 : Coordinates::f32;
    make_half_pixel_filter({static_cast<int>(placement.from.width), width, 0, width, placement.flip}, across_,
                           coordinates);
    make_half_pixel_filter({static_cast<int>(placement.from.height), height, 0, height, false}, down_, coordinates);
    write_image(window, placement, canvas, pixels);
    if (options_.training && options_.jitter.any()) change_colors(placement, canvas, random, pixels);
  }

  void write_image(const Window& window, const Placement&, const Shape& canvas, std::span<float> pixels) {
    pad_with_zeros(across_, 0, static_cast<int>(canvas[1]));
    pad_with_zeros(down_, 0, static_cast<int>(canvas[0]));
    resample(decoder_.decode(window), across_, down_, rows_, pixels.data());
  }

  void write_image(const Window& window, const Placement& placement, const Shape& canvas, std::span<uint8_t> pixels) {
    const int64_t width = placement.to.width, height = placement.to.height, stride = 3 * canvas[1];
    resample(decoder_.decode(window), across_, down_, rows_, pixels.data(), stride);
    for (int64_t y = 0; y < height; ++y)
      std::ranges::fill(
          pixels.subspan(static_cast<size_t>(y * stride + 3 * width), static_cast<size_t>(stride - 3 * width)),
          uint8_t{0});
    std::ranges::fill(pixels.subspan(static_cast<size_t>(height * stride)), uint8_t{0});
  }

  // TensorFlow's order: brightness, contrast, saturation, hue.
  template <class Level>
  void change_colors(const Placement& placement, const Shape& canvas, RandomStream& random, std::span<Level> pixels) {
    const ColorJitter& by = options_.jitter;
    const int64_t count = placement.to.height * placement.to.width, length = 3 * placement.to.width;
    colors_.resize(static_cast<size_t>(3 * count));
    const auto row_of = [&](int64_t y) { return pixels.data() + y * 3 * canvas[1]; };
    for (int64_t y = 0; y < placement.to.height; ++y)
      std::transform(row_of(y), row_of(y) + length, colors_.data() + y * length,
                     [](Level value) { return static_cast<float>(value) / 255; });
    const auto factor = [&](float spread) { return random.uniform(1 - spread, 1 + spread); };
    add_brightness(colors_.data(), count, random.uniform(-by.brightness, by.brightness));
    if (const float contrast = factor(by.contrast); by.contrast != 0) scale_contrast(colors_.data(), count, contrast);
    for (float& value : colors_) value = std::clamp(value, 0.0f, 1.0f);
    if (const float saturation = factor(by.saturation); by.saturation != 0)
      scale_saturation(colors_.data(), count, saturation);
    if (const float turns = random.uniform(-by.hue, by.hue); by.hue != 0) rotate_hue(colors_.data(), count, turns);
    for (int64_t y = 0; y < placement.to.height; ++y)
      std::transform(colors_.data() + y * length, colors_.data() + (y + 1) * length, row_of(y),
                     [](float value) { return level_of<Level>(std::clamp(value, 0.0f, 1.0f) * 255); });
  }

  void clear_objects() {
    boxes_.clear();
    classes_.clear();
    begins_.clear();
    ends_.clear();
  }

  void add_object(const coco::Annotation& object, const std::array<float, 4>& corners) {
    boxes_.insert(boxes_.end(), corners.begin(), corners.end());
    classes_.push_back(static_cast<int32_t>(object.category) + 1);
    begins_.push_back(static_cast<int32_t>(ends_.size()));
  }

  void place_objects(const ImageSize& image, const Placement& placement) {
    clear_objects();
    for (const coco::Annotation* object : objects_) {
      add_object(*object, placement.corners(clipped(object->box, image)));
      if (options_.masks) append_runs(*object, placement, ends_);
    }
  }

  void place_objects(const ObjectCrop& crop, const Placement& placement) {
    clear_objects();
    for (const size_t i : crop.objects) {
      const BoxFractions box = crop.box_in_part(fractions_[i]);
      const std::array<float, 4> corners = corners_in(box, placement);
      if (corners[0] < corners[2] && corners[1] < corners[3]) add_object(*objects_[i], corners);
    }
  }

  void write_objects(const Row& row) {
    check_room(classes_.size(), dataset_.max_boxes_, "objects", "max_boxes");
    check_room(ends_.size(), dataset_.max_runs_, "runs of masks", "max_runs");
    begins_.resize(static_cast<size_t>(dataset_.max_boxes_) + 1, static_cast<int32_t>(ends_.size()));
    std::ranges::copy(begins_, row.span<int32_t>(Fields::run_begins).begin());
    row.write<float>(Fields::boxes, boxes_);
    row.write<int32_t>(Fields::classes, classes_);
    row.write<int32_t>(Fields::run_ends, ends_);
  }

  const DetectionDataset& dataset_;
  const DetectionDatasetOptions& options_;
  std::unique_ptr<DetectionSource::Reader> source_;
  ImageDecoder decoder_;
  Filter<float> across_, down_;
  std::vector<const coco::Annotation*> objects_;  // kept objects of the sample
  std::vector<BoxFractions> fractions_;           // all boxes of the image
  std::vector<float> rows_, colors_, boxes_;
  std::vector<int32_t> classes_, begins_, ends_;
};

std::unique_ptr<SampleReader> DetectionDataset::reader() const { return std::make_unique<Reader>(*this); }

}  // namespace dtrain::data
