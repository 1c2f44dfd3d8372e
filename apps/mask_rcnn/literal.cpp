#include "apps/mask_rcnn/literal.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

#include "apps/cli/values.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr int kDeepest = 8;

bool is_space(char c) { return c == ' ' || c == '\t'; }

// A number or an unquoted word.
Literal of_word(const std::string& word) {
  Literal literal{.source = word};
  if (word == "None") return literal;
  if (word == "True" || word == "False" || word == "true" || word == "false") {
    literal.kind = Literal::Kind::boolean;
    literal.truth = word == "True" || word == "true";
    return literal;
  }
  const char *begin = word.data() + (word.starts_with('+') ? 1 : 0), *end = word.data() + word.size();
  const auto whole = std::from_chars(begin, end, literal.integer);
  if (whole.ec == std::errc() && whole.ptr == end) {
    literal.kind = Literal::Kind::integer;
    literal.real = static_cast<double>(literal.integer);
    return literal;
  }
  const auto [stop, error] = std::from_chars(begin, end, literal.real);
  const bool number = error == std::errc() && stop == end && std::isfinite(literal.real);
  literal.kind = number ? Literal::Kind::real : Literal::Kind::text;
  if (!number) literal.text = word;
  return literal;
}

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Literal whole() {
    Literal literal = one(0);
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == ',') {
      Literal tuple{.kind = Literal::Kind::sequence};
      tuple.items.push_back(std::move(literal));
      take_items(tuple, '\0', 1);
      literal = std::move(tuple);
    }
    if (at_ < text_.size()) fail("the end");
    literal.source = text_;
    return literal;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    const std::string found = at_ < text_.size() ? fmt::format("'{}'", text_.substr(at_, 12)) : "the end";
    throw Error(fmt::format("expected {} at character {}, found {}", expected, at_ + 1, found));
  }

  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  Literal one(int depth) {
    skip_spaces();
    if (depth > kDeepest) fail("no deeper nesting");
    const size_t begin = at_;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    Literal literal;
    if (c == '[' || c == '(') {
      ++at_;
      literal.kind = Literal::Kind::sequence;
      const char close = c == '[' ? ']' : ')';
      const bool commas = take_items(literal, close, depth + 1);
      // As in Python, parentheses around a single value without a comma are no tuple.
      if (c == '(' && literal.items.size() == 1 && !commas) literal = Literal(literal.items[0]);
    } else if (c == '\'' || c == '"') {
      literal.kind = Literal::Kind::text;
      literal.text = take_quoted(c);
    } else {
      literal = of_word(take_word());
    }
    literal.source = text_.substr(begin, at_ - begin);
    return literal;
  }

  // Items up to `close` ('\0': end of text), after an optional first item; and whether there were commas.
  bool take_items(Literal& sequence, char close, int depth) {
    bool commas = false;
    for (bool after_item = !sequence.items.empty();; after_item = true) {
      skip_spaces();
      if (after_item && at_ < text_.size() && text_[at_] == ',') {
        commas = true;
        ++at_;
        skip_spaces();
      } else if (after_item && !(at_ < text_.size() ? text_[at_] == close : close == '\0')) {
        fail("a comma or the end of the sequence");
      }
      if (at_ >= text_.size() && close == '\0') return commas;
      if (at_ < text_.size() && close != '\0' && text_[at_] == close) return ++at_, commas;
      sequence.items.push_back(one(depth));
    }
  }

  std::string take_quoted(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) at_ = text_.size(), fail("a closing quote");
    const std::string inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != inside.npos) fail("a text without backslashes");
    at_ = end + 1;
    return inside;
  }

  std::string take_word() {
    const size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) &&
           std::string_view("[](),'\"").find(text_[at_]) == std::string_view::npos)
      ++at_;
    if (at_ == begin) fail("a value");
    return text_.substr(begin, at_ - begin);
  }

  const std::string& text_;
  size_t at_ = 0;
};

[[noreturn]] void refuse(std::string_view expected, const Literal& literal) {
  throw Error(fmt::format("expected {}, found {}", expected, literal.source));
}

}  // namespace

Literal parse_literal(const std::string& text) { return Parser(text).whole(); }

bool as_bool(const Literal& literal) {
  if (literal.kind == Literal::Kind::boolean) return literal.truth;
  if (literal.kind == Literal::Kind::integer && (literal.integer == 0 || literal.integer == 1))
    return literal.integer == 1;
  refuse("True or False", literal);
}

int64_t as_integer(const Literal& literal, cli::Range<int64_t> range) {
  constexpr double kExact = 1LL << 53;
  Literal whole = literal;
  if (literal.kind == Literal::Kind::real && std::abs(literal.real) <= kExact &&
      literal.real == std::floor(literal.real))
    whole.integer = static_cast<int64_t>(literal.real);
  else if (literal.kind != Literal::Kind::integer)
    refuse("an integer", literal);
  if (whole.integer < range.low) refuse(fmt::format("an integer of at least {}", range.low), literal);
  if (whole.integer > range.high) refuse(fmt::format("an integer of at most {}", range.high), literal);
  return whole.integer;
}

double as_number(const Literal& literal, cli::Range<double> range) {
  if (literal.kind != Literal::Kind::real && literal.kind != Literal::Kind::integer) refuse("a number", literal);
  if (literal.real < range.low) refuse(fmt::format("a number of at least {:g}", range.low), literal);
  if (literal.real > range.high) refuse(fmt::format("a number of at most {:g}", range.high), literal);
  return literal.real;
}

const std::vector<Literal>& as_sequence(const Literal& literal, size_t count, std::string_view form) {
  if (literal.kind != Literal::Kind::sequence || (count > 0 && literal.items.size() != count)) refuse(form, literal);
  return literal.items;
}

std::vector<std::string> as_texts(const Literal& literal) {
  const std::string form = "a text or a list of texts";
  if (literal.kind == Literal::Kind::text) return {literal.text};
  std::vector<std::string> texts;
  for (const Literal& item : as_sequence(literal, 0, form)) {
    if (item.kind != Literal::Kind::text) refuse(form, literal);
    texts.push_back(item.text);
  }
  return texts;
}

std::string unquoted(const std::string& text) {
  const bool has_quotes =
      text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.front() == text.back();
  return has_quotes ? text.substr(1, text.size() - 2) : text;
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') == text.npos ? '\'' : '"';
  return quote + text + quote;
}

}  // namespace dtrain::mask_rcnn
