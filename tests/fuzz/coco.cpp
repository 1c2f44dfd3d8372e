// COCO annotations, results and masks, and messages of detections. The first byte selects the input: annotations (a),
// annotations with lookup of image files (f), ground truth to score (s), results (d), a message of detections (m), size
// and text of an RLE (r), otherwise size and vertices of a polygon. Accepted input must survive use and a round trip.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "data/coco/detection_message.h"
#include "dtrain/data/coco/evaluate.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace dtrain;
using namespace dtrain::data::coco;

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

void use(const Rle& mask) {
  require(parse(to_text(mask), mask.height, mask.width) == mask, "an RLE is not the same after it was written");
  const BoundingBox box = bounds(mask);
  require(
      box.x + box.width <= static_cast<double>(mask.width) && box.y + box.height <= static_cast<double>(mask.height),
      "a mask leads out of its image");
  require(static_cast<double>(area(mask)) <= box.width * box.height, "a mask is larger than the box around it");
  if (mask.height * mask.width > 100'000) return;
  const std::vector<uint8_t> pixels = decode(mask);
  require(decode(encode(pixels, mask.height, mask.width)) == pixels, "a mask is not the same after it was encoded");
  const Rle both[] = {mask, mask};
  require(decode(merge(both)) == pixels && decode(merge(both, true)) == pixels, "a mask is not its own union");
}

// Scores ground truth against itself.
void score(const Annotations& truth, EvaluationOptions::Compare compare) {
  if (truth.categories.size() > 50) return;
  std::vector<Detection> detections;
  for (const Annotation& annotation : truth.annotations) {
    const AnnotatedImage& image = truth.images[annotation.image];
    Detection& detection = detections.emplace_back();
    detection.image_id = image.id;
    detection.category_id = truth.categories[annotation.category].id;
    detection.score = .5;
    detection.box = annotation.box;
    if (compare == EvaluationOptions::Compare::masks) detection.mask = mask_of(annotation, image.height, image.width);
  }
  Evaluator evaluator(truth, {.compare = compare});
  evaluator.add(detections);
  for (const Statistic& one : evaluator.score().statistics())
    require(one.value == -1 || (one.value >= 0 && one.value <= 1), "a statistic that is none");
}

void use(const Annotations& truth) {
  for (const Annotation& annotation : truth.annotations) {
    const AnnotatedImage& image = truth.images[annotation.image];
    if (annotation.segmentation.index() != 0) use(mask_of(annotation, image.height, image.width));
  }
  score(truth, EvaluationOptions::Compare::boxes);
}

// Rasterising masks of large images exceeds the fuzzer's timeout.
bool has_small_images(const Annotations& truth) {
  return std::ranges::all_of(truth.images,
                             [](const AnnotatedImage& image) { return image.height * image.width <= 1'000'000; });
}

void use_truth(const std::string& text) {
  const Annotations truth = parse_annotations(text, "truth", {.use = AnnotationOptions::Use::scoring});
  score(truth, EvaluationOptions::Compare::boxes);
  const auto has_mask = [](const Annotation& one) { return one.segmentation.index() != 0; };
  if (has_small_images(truth) && std::ranges::all_of(truth.annotations, has_mask))
    score(truth, EvaluationOptions::Compare::masks);
}

// Finds every other image file, and requires that no name escapes the folder.
void use_found(const std::string& text) {
  bool is_found = false;
  const auto complete = [&](AnnotatedImage& image, const std::string&) {
    const std::filesystem::path name = image.file_name;
    require(name.is_relative() && name.has_filename() && std::ranges::find(name, "..") == name.end(),
            "a name leads out of the folder of images");
    is_found = !is_found;
    if (!is_found) throw Error(Fault::data, "no such file");
    if (image.width == 0) image.width = image.height = 9;
  };
  use(parse_annotations(text, "annotations", {.complete = complete}));
}

// Can be written as JSON.
bool is_finite(const Detection& detection) {
  const auto all_finite = [](const auto& numbers) {
    return std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); });
  };
  const BoundingBox box = detection.box.value_or(BoundingBox());
  return all_finite(std::array{box.x, box.y, box.width, box.height}) &&
         std::ranges::all_of(detection.polygons, all_finite);
}

void require_same(const std::vector<Detection>& a, const std::vector<Detection>& b) {
  require(a.size() == b.size(), "results are lost when they are written");
  for (size_t i = 0; i < a.size(); ++i)
    require(a[i].image_id == b[i].image_id && a[i].category_id == b[i].category_id && a[i].score == b[i].score &&
                a[i].box == b[i].box && a[i].mask == b[i].mask && (a[i].mask || a[i].polygons == b[i].polygons),
            "a result is not the same after it was written");
}

void use_message(const std::string& text) {
  const std::vector<Detection> detections = parse_detections(text);
  std::string message;
  for (const Detection& detection : detections) append_detection(message, detection);
  require_same(parse_detections(message), detections);
}

void use(std::vector<Detection> detections) {
  std::erase_if(detections, [](const Detection& detection) { return !is_finite(detection); });
  std::string text;
  ResultWriter writer([&](std::string_view piece) { text += piece; });
  for (const Detection& detection : detections) writer.add(detection);
  writer.finish();
  require_same(parse_results(text, "again"), detections);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 5) return 0;
  const std::string text = fuzz::text_of(data + 1, size - 1);
  const int64_t height = data[1] * 256 + data[2], width = data[3] * 256 + data[4];
  return fuzz::expect(Fault::data, [&] {
    switch (data[0]) {
      case 'a':
        return use(parse_annotations(text, "annotations"));
      case 's':
        return use_truth(text);
      case 'f':
        return use_found(text);
      case 'd':
        return use(parse_results(text, "results"));
      case 'm':
        return use_message(text);
      case 'r':
        return use(parse(text.substr(4), height, width));
      default:
        std::vector<float> numbers((size - 5) / sizeof(float));
        if (!numbers.empty()) std::memcpy(numbers.data(), data + 5, numbers.size() * sizeof(float));
        return use(from_polygon(std::vector<double>(numbers.begin(), numbers.end()), height, width));
    }
  });
}
