#include "data/coco/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data::coco {

namespace {

void append_numbers(std::string& text, std::span<const double> numbers) {
  text += '[';
  for (size_t i = 0; i < numbers.size(); ++i) append_json(i ? text += ',' : text, numbers[i]);
  text += ']';
}

}  // namespace

void append_json(std::string& text, double number) {
  if (!std::isfinite(number))
    throw Error(Fault::numeric, concat("JSON output has the number ", number, ", expected finite numbers"));
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

void append_json(std::string& text, const BoundingBox& box) {
  append_numbers(text, std::array{box.x, box.y, box.width, box.height});
}

void append_json(std::string& text, const Polygons& polygons) {
  text += '[';
  for (size_t i = 0; i < polygons.size(); ++i) append_numbers(i ? text += ',' : text, polygons[i]);
  text += ']';
}

void append_json(std::string& text, const Rle& mask) {
  text += concat("{\"size\": [", mask.height, ", ", mask.width, "], \"counts\": \"");
  for (const char c : to_text(mask)) {
    if (c == '\\') text += '\\';
    text += c;
  }
  text += "\"}";
}

}  // namespace dtrain::data::coco
