#include "data/coco/results.h"

#include "data/coco/json_text.h"
#include "data/coco/read_records.h"
#include "libdtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

Detection take_detection(Record& record) {
  Detection detection;
  detection.image_id = record.whole(Key::image_id);
  detection.category_id = record.whole(Key::category_id);
  detection.score = record.number(Key::score);
  const bool empty_box = record.at(Key::box).kind == Value::Kind::list && record.box.empty();
  if (!empty_box) detection.box = record.take_box();
  Segmentation segmentation = record.take_segmentation();
  if (std::holds_alternative<Polygons>(segmentation)) record.fail("segmentation is a list of polygons, expected RLE");
  if (Rle* mask = std::get_if<Rle>(&segmentation)) detection.mask = std::move(*mask);
  if (!detection.box && !detection.mask) record.fail("neither bbox nor segmentation");
  return detection;
}

std::vector<Detection> read(const TextSource& source) {
  std::vector<Detection> detections;
  read_records(source, {{"", "detection", [&](Record& record) { detections.push_back(take_detection(record)); }}});
  return detections;
}

}  // namespace

std::vector<Detection> read_results(const std::string& path) { return read(file_source(path)); }

std::vector<Detection> parse_results(std::string_view text, const std::string& where) {
  return read(text_source(text, where));
}

void ResultWriter::add(const Detection& detection) {
  DT_CHECK(!finished_, "a detection for a list of results that is finished");
  std::string text =
      concat(empty_ ? "[" : ",\n", "{\"image_id\": ", detection.image_id, ", \"category_id\": ", detection.category_id);
  if (detection.box) append_json(text += ", \"bbox\": ", *detection.box);
  if (detection.mask) append_json(text += ", \"segmentation\": ", *detection.mask);
  append_json(text += ", \"score\": ", detection.score);
  text += '}';
  write_(text);
  empty_ = false;
}

void ResultWriter::finish() {
  DT_CHECK(!finished_, "a list of results is finished twice");
  write_(empty_ ? "[]\n" : "]\n");
  finished_ = true;
}

}  // namespace dtrain::data::coco
