#include "data/detection_record.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "dtrain/core/error.h"
#include "dtrain/data/png.h"

namespace dtrain::data {
namespace {

static_assert(std::endian::native == std::endian::little);

// Boxes may exceed the image slightly; these limits catch boxes in pixels.
constexpr float kMinFraction = -1, kMaxFraction = 2;

void require_as_many(const char* key, size_t found, size_t objects) {
  if (found != objects)
    throw Error(Fault::data,
                concat("feature ", key, " has ", found, " values, expected one for each of ", objects, " objects"));
}

coco::Rle mask_of_png(std::span<const std::byte> png, int64_t height, int64_t width) {
  ImageDecoder decoder;
  const ImageInfo info = decoder.open(png);
  if (info.height != height || info.width != width)
    throw Error(Fault::data,
                concat("a mask of ", info.width, "x", info.height, " pixels in an image of ", width, "x", height));
  const ImageView view = decoder.decode();
  std::vector<uint8_t> set(static_cast<size_t>(height * width));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      set[static_cast<size_t>(y * width + x)] = view.row(static_cast<int>(y))[3 * x] != 0;
  return coco::encode(set, height, width);
}

std::string packed(const coco::Segmentation& segmentation) {
  std::string out;
  if (const auto* rle = std::get_if<coco::Rle>(&segmentation)) out.append(1, 'R').append(coco::to_text(*rle));
  const auto* polygons = std::get_if<coco::Polygons>(&segmentation);
  if (!polygons) return out;
  out.push_back('P');
  for (const std::vector<double>& polygon : *polygons) {
    const auto count = static_cast<uint32_t>(polygon.size());
    out.append(reinterpret_cast<const char*>(&count), sizeof count);
    out.append(reinterpret_cast<const char*>(polygon.data()), polygon.size() * sizeof(double));
  }
  return out;
}

coco::Polygons unpacked_polygons(std::string_view bytes) {
  coco::Polygons polygons;
  while (!bytes.empty()) {
    uint32_t count = 0;
    if (bytes.size() >= sizeof count) std::memcpy(&count, bytes.data(), sizeof count);
    bytes.remove_prefix(std::min(bytes.size(), sizeof count));
    if (count < 6 || count % 2 != 0 || bytes.size() / sizeof(double) < count)
      throw Error(Fault::data, concat("a polygon of ", count, " coordinates in ", bytes.size(), " bytes"));
    std::vector<double>& polygon = polygons.emplace_back(count);
    std::memcpy(polygon.data(), bytes.data(), count * sizeof(double));
    bytes.remove_prefix(count * sizeof(double));
    for (const double value : polygon)
      if (!(std::abs(value) <= coco::kMaxCoordinate))
        throw Error(Fault::data, concat("a polygon with the coordinate ", value));
  }
  if (polygons.empty()) throw Error(Fault::data, "a segmentation without polygons");
  return polygons;
}

}  // namespace

std::optional<int64_t> DetectionRecord::id() const {
  int64_t value = 0;
  const char* const end = source_id.data() + source_id.size();
  const auto [stopped, error] = std::from_chars(source_id.data(), end, value);
  if (source_id.empty() || error != std::errc() || stopped != end) return {};
  return value;
}

// Returns false if the feature is absent or unset.
template <class Value>
bool DetectionRecordReader::list(const char* key, std::vector<Value>& values) {
  values.clear();
  const Feature* feature = example_.find(key);
  if (!feature || feature->kind == FeatureKind::unset) return false;
  try {
    feature->read(values);
  } catch (const Error& error) {
    throw Error(Fault::data, concat("feature ", key, " ", error.what()));
  }
  return true;
}

const DetectionRecord& DetectionRecordReader::read(std::span<const std::byte> record) {
  example_.parse(record);
  record_.encoded = std::as_bytes(std::span(example_.bytes("image/encoded")));
  record_.height = example_.int64("image/height");
  record_.width = example_.int64("image/width");
  const ImageInfo info = decoder_.open(record_.encoded);
  if (info.height != record_.height || info.width != record_.width)
    throw Error(Fault::data, concat("image/width and image/height are ", record_.width, "x", record_.height,
                                    ", the image is ", info.width, "x", info.height));
  coco::check_mask_size(record_.height, record_.width);
  record_.source_id = list("image/source_id", views_) && !views_.empty() ? views_.front() : std::string_view();
  record_.filename = list("image/filename", views_) && !views_.empty() ? views_.front() : std::string_view();
  read_objects();
  read_optional_lists();
  return record_;
}

void DetectionRecordReader::read_objects() {
  list("image/object/class/label", labels_);
  const size_t count = labels_.size();
  const auto edge = [&](const char* key, std::vector<float>& values) {
    list(key, values);
    require_as_many(key, values.size(), count);
  };
  edge("image/object/bbox/xmin", left_);
  edge("image/object/bbox/xmax", right_);
  edge("image/object/bbox/ymin", top_);
  edge("image/object/bbox/ymax", bottom_);
  const auto width = static_cast<double>(record_.width), height = static_cast<double>(record_.height);
  record_.objects.assign(count, {});
  for (size_t i = 0; i < count; ++i) {
    // Also false for NaN.
    if (!(kMinFraction <= left_[i] && left_[i] <= right_[i] && right_[i] <= kMaxFraction && kMinFraction <= top_[i] &&
          top_[i] <= bottom_[i] && bottom_[i] <= kMaxFraction))
      throw Error(Fault::data, concat("bounding box ", i, " is ymin ", top_[i], " xmin ", left_[i], " ymax ",
                                      bottom_[i], " xmax ", right_[i], ", expected min <= max, as fractions"));
    DetectionRecord::Object& object = record_.objects[i];
    object.label = labels_[i];
    object.box = {left_[i] * width, top_[i] * height, (double{right_[i]} - left_[i]) * width,
                  (double{bottom_[i]} - top_[i]) * height};
    object.area = object.box.width * object.box.height;
  }
}

void DetectionRecordReader::read_optional_lists() {
  std::vector<DetectionRecord::Object>& objects = record_.objects;
  const auto each = [&](const char* key, auto& values, auto take) {
    if (!list(key, values) || values.empty()) return;
    require_as_many(key, values.size(), objects.size());
    for (size_t i = 0; i < objects.size(); ++i) take(objects[i], values[i]);
  };
  using Object = DetectionRecord::Object;
  each("image/object/is_crowd", crowd_, [](Object& object, int64_t crowd) {
    if (crowd != 0 && crowd != 1) throw Error(Fault::data, concat("image/object/is_crowd is ", crowd));
    object.is_crowd = crowd == 1;
  });
  each("image/object/area", areas_, [](Object& object, float area) {
    if (!(std::isfinite(area) && area >= 0)) throw Error(Fault::data, concat("image/object/area is ", area));
    object.area = area;
  });
  each("image/object/class/text", views_, [](Object& object, std::string_view text) { object.text = text; });
  each("image/object/mask", views_, [](Object& object, std::string_view mask) { object.mask = mask; });
  each("image/object/segmentation", views_, [](Object& object, std::string_view mask) { object.segmentation = mask; });
}

coco::Segmentation segmentation_of(const DetectionRecord::Object& object, int64_t height, int64_t width) {
  if (object.segmentation.starts_with('R')) return coco::parse(object.segmentation.substr(1), height, width);
  if (object.segmentation.starts_with('P')) return unpacked_polygons(object.segmentation.substr(1));
  if (!object.segmentation.empty()) throw Error(Fault::data, "image/object/segmentation begins with neither R nor P");
  if (!object.mask.empty()) return mask_of_png(std::as_bytes(std::span(object.mask)), height, width);
  return {};
}

namespace {

// Collects one value per object, as the lists of a record.
template <class Value, class Of>
std::vector<Value> of_each(const DetectionImage& image, Of of) {
  std::vector<Value> values;
  for (const coco::Annotation& object : image.objects) values.push_back(of(object));
  return values;
}

void write_masks(const DetectionImage& image, ExampleWriter& writer) {
  const int64_t height = image.size.height, width = image.size.width;
  const auto as_png = [&](const coco::Annotation& object) {
    if (std::holds_alternative<std::monostate>(object.segmentation)) return std::string();
    const std::vector<uint8_t> pixels = coco::decode(coco::mask_of(object, height, width));
    const std::vector<std::byte> png = encode_grey_png(pixels, static_cast<int>(width), static_cast<int>(height));
    return std::string(reinterpret_cast<const char*>(png.data()), png.size());
  };
  const auto write = [&](const char* key, const std::vector<std::string>& masks) {
    writer.bytes(key, std::vector<std::string_view>(masks.begin(), masks.end()));
  };
  write("image/object/mask", of_each<std::string>(image, as_png));
  write("image/object/segmentation",
        of_each<std::string>(image, [](const coco::Annotation& object) { return packed(object.segmentation); }));
}

}  // namespace

std::string detection_example(const DetectionImage& image, bool masks) {
  const ImageSize& of = image.size;
  const auto width = static_cast<double>(of.width), height = static_cast<double>(of.height);
  ExampleWriter writer;
  writer.int64("image/height", of.height);
  writer.int64("image/width", of.width);
  writer.bytes("image/filename", image.filename);
  const std::string number = std::to_string(image.id);
  writer.bytes("image/source_id", image.id_text.empty() ? number : image.id_text);
  writer.bytes("image/encoded", {reinterpret_cast<const char*>(image.encoded.data()), image.encoded.size()});
  writer.bytes("image/format", image.format);
  const auto edge = [&](const char* key, auto pixels, double all) {
    writer.floats(key, of_each<float>(image, [&](const coco::Annotation& object) {
                    return static_cast<float>(pixels(clipped(object.box, of)) / all);
                  }));
  };
  edge(
      "image/object/bbox/xmin", [](const coco::BoundingBox& box) { return box.x; }, width);
  edge(
      "image/object/bbox/xmax", [](const coco::BoundingBox& box) { return box.x + box.width; }, width);
  edge(
      "image/object/bbox/ymin", [](const coco::BoundingBox& box) { return box.y; }, height);
  edge(
      "image/object/bbox/ymax", [](const coco::BoundingBox& box) { return box.y + box.height; }, height);
  writer.bytes("image/object/class/text", of_each<std::string_view>(image, [&](const coco::Annotation& object) {
                 return std::string_view(image.categories[object.category].name);
               }));
  writer.int64s("image/object/class/label", of_each<int64_t>(image, [&](const coco::Annotation& object) {
                  return image.categories[object.category].id;
                }));
  writer.int64s("image/object/is_crowd",
                of_each<int64_t>(image, [](const coco::Annotation& object) { return int64_t{object.is_crowd}; }));
  writer.floats("image/object/area",
                of_each<float>(image, [](const coco::Annotation& object) { return static_cast<float>(object.area); }));
  if (masks) write_masks(image, writer);
  return writer.take();
}

}  // namespace dtrain::data
