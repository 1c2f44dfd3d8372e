// COCO's files and masks. The first byte says what follows: a file of annotations, the same with files that are looked
// for, ground truth to score, a file of results, the size and text of an RLE, or the size and corners of a polygon.
// What is accepted has to survive being written and used.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "data/coco/evaluate.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace dtrain;
using namespace dtrain::data::coco;

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

void use(const Rle& mask) {
  require(parse(to_text(mask), mask.height, mask.width) == mask, "an RLE is not the same after it was written");
  const Box box = bounds(mask);
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

// Scores the truth as its own detections.
void score(const Annotations& truth, EvaluationOptions::Compare compare) {
  if (truth.categories.size() > 50) return;
  std::vector<Detection> detections;
  for (const Annotation& annotation : truth.annotations) {
    const Image& image = truth.images[annotation.image];
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
    const Image& image = truth.images[annotation.image];
    if (annotation.segmentation.index() != 0) use(mask_of(annotation, image.height, image.width));
  }
  score(truth, EvaluationOptions::Compare::boxes);
}

// Masks of large images take longer to draw than a fuzzer waits.
bool has_small_images(const Annotations& truth) {
  return std::ranges::all_of(truth.images, [](const Image& image) { return image.height * image.width <= 1'000'000; });
}

void use_truth(const std::string& text) {
  const Annotations truth = parse_annotations(text, "truth", {.use = AnnotationOptions::Use::scoring});
  score(truth, EvaluationOptions::Compare::boxes);
  const auto has_mask = [](const Annotation& one) { return one.segmentation.index() != 0; };
  if (has_small_images(truth) && std::ranges::all_of(truth.annotations, has_mask))
    score(truth, EvaluationOptions::Compare::masks);
}

// Every other image is found, in names that never lead out of their folder.
void use_found(const std::string& text) {
  bool is_found = false;
  const auto complete = [&](Image& image, const std::string&) {
    const std::filesystem::path name = image.file_name;
    require(name.is_relative() && name.has_filename() && std::ranges::find(name, "..") == name.end(),
            "a name leads out of the folder of images");
    is_found = !is_found;
    if (!is_found) throw Error(Fault::data, "no such file");
    if (image.width == 0) image.width = image.height = 9;
  };
  use(parse_annotations(text, "annotations", {.complete = complete}));
}

// JSON has a form for it.
bool is_finite(const Detection& detection) {
  const auto all_finite = [](const auto& numbers) {
    return std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); });
  };
  const Box box = detection.box.value_or(Box());
  return all_finite(std::array{box.x, box.y, box.width, box.height}) &&
         std::ranges::all_of(detection.polygons, all_finite);
}

void use(std::vector<Detection> detections) {
  std::erase_if(detections, [](const Detection& detection) { return !is_finite(detection); });
  std::string text;
  ResultWriter writer([&](std::string_view piece) { text += piece; });
  for (const Detection& detection : detections) writer.add(detection);
  writer.finish();
  const std::vector<Detection> again = parse_results(text, "again");
  require(again.size() == detections.size(), "results are lost when they are written");
  for (size_t i = 0; i < again.size(); ++i)
    require(again[i].box == detections[i].box && again[i].mask == detections[i].mask &&
                (again[i].mask || again[i].polygons == detections[i].polygons) && again[i].score == detections[i].score,
            "a result is not the same after it was written");
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
      case 'r':
        return use(parse(text.substr(4), height, width));
      default:
        std::vector<float> numbers((size - 5) / sizeof(float));
        if (!numbers.empty()) std::memcpy(numbers.data(), data + 5, numbers.size() * sizeof(float));
        return use(from_polygon(std::vector<double>(numbers.begin(), numbers.end()), height, width));
    }
  });
}
