#include "dtrain/data/coco/results.h"

#include "data/coco/json_text.h"
#include "data/coco/read_records.h"
#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

void take_mask(Record& record, Detection& detection) {
  Segmentation segmentation = record.take_segmentation();
  if (Rle* mask = std::get_if<Rle>(&segmentation)) detection.mask = std::move(*mask);
  if (Polygons* polygons = std::get_if<Polygons>(&segmentation)) detection.polygons = std::move(*polygons);
}

Detection take_detection(Record& record, const ResultOptions& options) {
  Detection detection;
  detection.image_id = record.identifier(Key::image_id).number;
  detection.category_id = record.identifier(Key::category_id).number;
  detection.score = record.number(Key::score);
  detection.box = record.take_box();
  if (options.masks || !detection.box) take_mask(record, detection);
  if (!detection.box && !detection.mask && detection.polygons.empty()) record.fail("neither bbox nor segmentation");
  return detection;
}

std::vector<Detection> read(const TextSource& source, const ResultOptions& options) {
  std::vector<Detection> detections;
  const NonFinite non_finite = read_records(
      source, {{"", "detection", [&](Record& record) { detections.push_back(take_detection(record, options)); }}});
  for (uint64_t i = 0; options.findings && i < non_finite.count; ++i)
    options.findings->add("numbers NaN or Infinity, which are invalid JSON", "read as NaN",
                          concat("byte ", non_finite.first));
  return detections;
}

}  // namespace

std::vector<Detection> read_results(const std::string& path, const ResultOptions& options) {
  return read(file_source(path), options);
}

std::vector<Detection> parse_results(std::string_view text, const std::string& where, const ResultOptions& options) {
  return read(text_source(text, where), options);
}

void ResultWriter::add(const Detection& detection) {
  DT_CHECK(!finished_, "results: a detection after finish()");
  std::string text =
      concat(empty_ ? "[" : ",\n", "{\"image_id\": ", detection.image_id, ", \"category_id\": ", detection.category_id);
  if (detection.box) append_json(text += ", \"bbox\": ", *detection.box);
  if (detection.mask) append_json(text += ", \"segmentation\": ", *detection.mask);
  if (!detection.mask && !detection.polygons.empty()) append_json(text += ", \"segmentation\": ", detection.polygons);
  append_json(text += ", \"score\": ", detection.score);
  text += '}';
  write_(text);
  empty_ = false;
}

void ResultWriter::finish() {
  DT_CHECK(!finished_, "results: finish() was called twice");
  write_(empty_ ? "[]\n" : "]\n");
  finished_ = true;
}

}  // namespace dtrain::data::coco
