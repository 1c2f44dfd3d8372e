// Python's literals, as values of keys: read, never evaluated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/range.h"

namespace dtrain::mask_rcnn {

struct Literal {
  enum class Kind { none, boolean, integer, real, text, sequence };
  Kind kind = Kind::none;
  bool truth = false;
  int64_t integer = 0;
  double real = 0;  // of an integer, too
  std::string text{};
  std::vector<Literal> items{};  // of a tuple or a list
  std::string source{};          // as it was written
};

// Numbers, True, False and None, texts in quotes, (tuples) and [lists] of literals, nested up to eight deep; without
// brackets, too, literals with commas between them are a tuple. Any other word without spaces, brackets, commas and
// quotes is a text. Throws Error saying what was expected and where.
Literal parse_literal(const std::string& text);

// What a literal holds. All throw Error saying what was expected and what was found.
bool as_bool(const Literal& literal);                                   // True, False, 1, 0
int64_t as_integer(const Literal& literal, cli::Range<int64_t> range);  // 1e3, too
double as_number(const Literal& literal, cli::Range<double> range);
// `form` says what was expected, "two integers" for instance; `count` 0: any number of items.
const std::vector<Literal>& as_sequence(const Literal& literal, size_t count, const std::string& form);
// A text, or a sequence of texts.
std::vector<std::string> as_texts(const Literal& literal);

// A text without the quotes around it.
std::string unquoted(const std::string& text);
// In quotes, so that parse_literal() reads the same.
std::string quoted(const std::string& text);

}  // namespace dtrain::mask_rcnn
