// COCO annotations, results, metrics and batches of detectors of version 0.1.
#include <cstdio>

#include "data/coco/annotations.h"
#include "data/coco/evaluate.h"
#include "data/coco/results.h"
#include "data/coco/rle.h"
#include "data/detection.h"
#include "data/detection_geometry.h"
#include "data/detection_source.h"

namespace coco = dtrain::data::coco;

coco::Annotations one_object() {
  coco::Annotations truth;
  truth.images = {{.id = 1, .file_name = "one.jpg", .width = 64, .height = 48}};
  truth.categories = {{.id = 1, .name = "cat"}};
  coco::Annotation object;
  object.id = 1, object.area = 100, object.box = coco::Box{10, 10, 10, 10};
  truth.annotations = {object};
  truth.begins = {0, 1};
  return truth;
}

std::shared_ptr<dtrain::data::DetectionDataset> open(const std::string& annotations, const std::string& folder) {
  dtrain::data::DetectionOptions options{.training = false, .flip_probability = 0};
  options.resize = dtrain::data::ResizeRule{.min_short_edge = 320, .max_short_edge = 320, .max_size = 512};
  return std::make_shared<dtrain::data::DetectionDataset>(dtrain::data::open_coco(annotations, folder), options);
}

int main(int argc, char** argv) try {
  const coco::Annotations truth = one_object();
  const coco::Image& image = truth.images.front();
  coco::Evaluator evaluator(truth, {.max_detections = {1, 10, 100}});
  evaluator.add(
      coco::Detection{.image_id = image.id, .category_id = 1, .score = 0.9, .box = coco::Box{10, 10, 10, 10}});
  const coco::Evaluation evaluation = evaluator.score();
  std::string text;
  coco::ResultWriter writer([&](std::string_view part) { text += part; });
  writer.finish();
  const coco::Rle mask = coco::from_polygon(std::vector<double>{0, 0, 8, 0, 8, 8, 0, 8}, image.height, image.width);
  const dtrain::data::ImageSize size = dtrain::data::resized({image.height, image.width}, 320, {});
  for (const coco::Statistic& one : evaluation.statistics()) std::printf("%s %.3f\n", one.name.c_str(), one.value);
  if (argc > 2) std::printf("%d images\n", static_cast<int>(open(argv[1], argv[2])->size()));
  std::printf("%d pixels, %d x %d, %zu\n", static_cast<int>(coco::area(mask)), static_cast<int>(size.width),
              static_cast<int>(size.height), text.size());
  return evaluation.average_precision(0) > 0.999 ? 0 : 1;
} catch (const dtrain::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
