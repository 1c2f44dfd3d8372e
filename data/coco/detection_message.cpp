#include "data/coco/detection_message.h"

#include <cmath>
#include <cstring>

#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

// A record, little-endian and without padding: uint8 parts, int64 image_id, int64 category_id, double score; with
// kHasBox 4 doubles; with kHasMask int64 height, int64 width, uint32 length and that many bytes of compressed RLE.
constexpr uint8_t kHasBox = 1, kHasMask = 2;

template <class T>
void append(std::string& message, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  message.append(bytes, sizeof value);
}

void check_finite(const Detection& detection) {
  const BoundingBox box = detection.box.value_or(BoundingBox());
  for (const double number : {detection.score, box.x, box.y, box.width, box.height})
    if (!std::isfinite(number))
      throw Error(Fault::numeric, concat("detection in image ", detection.image_id, " has the number ", number,
                                         ", expected finite scores and boxes"));
}

// Bounds-checked reader of a message.
class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : rest_(message) {}

  bool done() const { return rest_.empty(); }
  std::string_view bytes(size_t count) {
    if (count > rest_.size())
      throw Error(Fault::data, concat(rest_.size(), " bytes are left, expected at least ", count));
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <class T>
  T value() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  double finite(const char* what) {
    const auto number = value<double>();
    if (!std::isfinite(number)) throw Error(Fault::data, concat(what, " is ", number, ", expected a finite number"));
    return number;
  }

 private:
  std::string_view rest_;
};

BoundingBox take_box(MessageReader& reader) {
  BoundingBox box;
  for (double* number : {&box.x, &box.y, &box.width, &box.height}) *number = reader.finite("box");
  return box;
}

Rle take_mask(MessageReader& reader) {
  const auto height = reader.value<int64_t>(), width = reader.value<int64_t>();
  return parse(reader.bytes(reader.value<uint32_t>()), height, width);
}

Detection take_detection(MessageReader& reader) {
  const auto parts = reader.value<uint8_t>();
  if (parts == 0 || parts > (kHasBox | kHasMask))
    throw Error(Fault::data, concat("parts ", int{parts}, ", expected 1 (box), 2 (mask) or 3 (both)"));
  Detection detection{.image_id = reader.value<int64_t>(), .category_id = reader.value<int64_t>()};
  detection.score = reader.finite("score");
  if (parts & kHasBox) detection.box = take_box(reader);
  if (parts & kHasMask) detection.mask = take_mask(reader);
  return detection;
}

}  // namespace

void append_detection(std::string& message, const Detection& detection) {
  DT_CHECK(detection.box || detection.mask, "message: a detection without box and mask");
  DT_CHECK(detection.polygons.empty(), "message: a detection with polygons, expected an RLE mask");
  check_finite(detection);
  append(message, static_cast<uint8_t>((detection.box ? kHasBox : 0) | (detection.mask ? kHasMask : 0)));
  append(message, detection.image_id);
  append(message, detection.category_id);
  append(message, detection.score);
  if (const auto& box = detection.box)
    for (const double number : {box->x, box->y, box->width, box->height}) append(message, number);
  if (!detection.mask) return;
  const std::string runs = to_text(*detection.mask);
  append(message, detection.mask->height);
  append(message, detection.mask->width);
  append(message, static_cast<uint32_t>(runs.size()));
  message += runs;
}

std::vector<Detection> parse_detections(std::string_view message) {
  std::vector<Detection> detections;
  MessageReader reader(message);
  while (!reader.done()) {
    try {
      detections.push_back(take_detection(reader));
    } catch (const Error& error) {
      throw Error(error.fault(), concat("detection at index ", detections.size(), ": ", error.what()));
    }
  }
  return detections;
}

}  // namespace dtrain::data::coco
