// Parser of Python literals, the values of keys; never evaluates code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/range.h"

namespace dtrain::mask_rcnn {

struct Literal {
  enum class Kind { none, boolean, integer, real, text, sequence };
  Kind kind = Kind::none;
  bool truth = false;
  int64_t integer = 0;
  double real = 0;  // also set for integers
  std::string text{};
  std::vector<Literal> items{};  // of a tuple or a list
  std::string source{};          // source text
};

// Numbers, True, False, None, quoted strings, (tuples) and [lists], nested up to eight deep; comma-separated literals
// without brackets are a tuple. Any other word without spaces, brackets, commas and quotes is a string. Throws Error
// with the expected token and position.
Literal parse_literal(const std::string& text);

// Typed access to literals. All throw Error with the expected and the found value.
bool as_bool(const Literal& literal);                                   // True, False, 1, 0
int64_t as_integer(const Literal& literal, cli::Range<int64_t> range);  // 1e3, too
double as_number(const Literal& literal, cli::Range<double> range);
// `form`: description for errors, e.g. "two integers"; `count` 0: any number of items.
const std::vector<Literal>& as_sequence(const Literal& literal, size_t count, std::string_view form);
// A string or a sequence of strings.
std::vector<std::string> as_texts(const Literal& literal);

// A string without its quotes.
std::string unquoted(const std::string& text);
// Quoted, so that parse_literal() round-trips.
std::string quoted(const std::string& text);

}  // namespace dtrain::mask_rcnn
