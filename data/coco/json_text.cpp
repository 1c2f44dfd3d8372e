#include "data/coco/json_text.h"

#include <charconv>
#include <cmath>

#include "libdtrain/core/error.h"

namespace dtrain::data::coco {

void append_json(std::string& text, double number) {
  if (!std::isfinite(number))
    throw Error(Fault::numeric,
                concat("what is to be written has the number ", number, ", which JSON has no form for"));
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

void append_json(std::string& text, const Box& box) {
  char separator = '[';
  for (const double number : {box.x, box.y, box.width, box.height}) {
    text += separator;
    append_json(text, number);
    separator = ',';
  }
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
