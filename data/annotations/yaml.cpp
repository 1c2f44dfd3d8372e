#include "data/annotations/yaml.h"

#include <algorithm>
#include <set>

#include "data/annotations/yaml_escapes.h"
#include "dtrain/core/error.h"

namespace dtrain::data::annotations {
namespace {

class YamlParser {
 public:
  YamlParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  YamlValue parse() {
    if (text_.size() > kMaxYamlBytes)
      fail(concat("a file of ", text_.size(), " bytes, expected at most ", kMaxYamlBytes));
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    if (text_.find('\0') != text_.npos) fail("a NUL byte, expected UTF-8 text");
    next_line();
    if (at_end()) return {.kind = YamlValue::Kind::map};
    if (starts_item()) fail("a list, expected keys such as 'train:' and 'names:'");
    YamlValue map = here() == '{' ? whole_flow() : block(column(), 1);
    if (!at_end()) fail("a line that is indented less than the first one");
    return map;
  }

 private:
  using Kind = YamlValue::Kind;

  [[noreturn]] void fail(const std::string& problem) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    throw Error(Fault::data, concat(where_, ": line ", line, ": ", problem));
  }

  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return at_end() ? '\n' : text_[at_]; }
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  static bool is_break(char c) { return c == '\n' || c == '\r'; }
  bool blank_at(size_t at) const { return at >= text_.size() || is_blank(text_[at]) || is_break(text_[at]); }
  size_t column() const {
    const size_t line = text_.rfind('\n', at_ == 0 ? 0 : at_ - 1);
    const size_t begin = at_ == 0 || line == text_.npos || line >= at_ ? 0 : line + 1;
    return at_ - begin - (begin == 0 && text_.starts_with("\xef\xbb\xbf") ? 3 : 0);
  }
  // "- " or "-" at the end of a line.
  bool starts_item() const { return here() == '-' && blank_at(at_ + 1); }

  void count(int depth) {
    if (++values_ > kMaxYamlValues) fail(concat("more than ", kMaxYamlValues, " values"));
    if (depth > kMaxYamlDepth) fail(concat("values nested more than ", kMaxYamlDepth, " deep"));
  }

  // Moves to the end of the line, across blanks and a comment.
  void end_line() {
    const size_t begin = at_;
    while (is_blank(here()) && !at_end()) ++at_;
    if (here() == '#' && (at_ > begin || begin == 0 || blank_at(begin - 1)))
      while (!at_end() && !is_break(here())) ++at_;
    if (!at_end() && !is_break(here())) fail("text after a value");
  }

  // Moves to the first character of the next line that is not empty, from the end of a line or the begin of the text.
  void next_line() {
    while (!at_end()) {
      while (!at_end() && is_break(here())) ++at_;
      const size_t begin = at_;
      while (!at_end() && here() == ' ') ++at_;
      if (here() == '\t') fail("a tab in the indentation, expected spaces");
      if (here() == '#') {
        while (!at_end() && !is_break(here())) ++at_;
      } else if (at_ == begin && (rest().starts_with("---") || rest().starts_with("...")) && blank_at(at_ + 3)) {
        if (values_ > 0 || rest()[0] == '.') fail("several documents, expected one");
        at_ += 3;
        end_line();
      } else if (!at_end() && !is_break(here())) {
        return;
      }
    }
  }

  YamlValue whole_flow() {
    YamlValue map = flow(1);
    end_line();
    next_line();
    return map;
  }

  // A map or list of lines that begin in this column.
  YamlValue block(size_t indent, int depth) {
    count(depth);
    YamlValue value{.kind = starts_item() ? Kind::list : Kind::map};
    std::set<std::string> keys;
    while (!at_end() && column() == indent && starts_item() == (value.kind == Kind::list)) {
      if (value.kind == Kind::list) {
        ++at_;
        value.items.push_back(entry(indent, depth, false));
      } else {
        std::string key = key_of_line();
        if (!keys.insert(key).second) fail(concat("the key '", key, "' a second time"));
        YamlValue inner = entry(indent, depth, true);
        value.entries.emplace_back(std::move(key), std::move(inner));
      }
    }
    if (!at_end() && column() > indent) fail("a line that is indented more than the one before");
    return value;
  }

  std::string key_of_line() {
    std::string key;
    if (here() == '"' || here() == '\'') {
      key = quoted();
    } else {
      refuse_indicators();
      const size_t begin = at_;
      while (!at_end() && !is_break(here()) && !(here() == ':' && blank_at(at_ + 1))) {
        if (here() == '#' && is_blank(text_[at_ - 1])) break;
        ++at_;
      }
      key = trimmed(text_.substr(begin, at_ - begin));
    }
    if (here() != ':' || !blank_at(at_ + 1)) fail("a line without 'key: value'");
    ++at_;
    return key;
  }

  // What follows "key:" or "-" of a block in this column.
  YamlValue entry(size_t indent, int depth, bool of_key) {
    while (!at_end() && is_blank(here())) ++at_;
    if (is_break(here()) || here() == '#') {
      if (here() == '#' && !is_blank(text_[at_ - 1])) fail("'#' without a space before it");
      end_line();
      next_line();
      const bool is_deeper = !at_end() && (column() > indent || (of_key && column() == indent && starts_item()));
      if (is_deeper) return block(column(), depth + 1);
      count(depth);
      return {};
    }
    if (here() == '|' || here() == '>') return block_scalar(indent, depth);
    YamlValue value;
    if (here() == '[' || here() == '{') {
      value = flow(depth + 1);
    } else {
      count(depth);
      value.text = here() == '"' || here() == '\'' ? quoted() : plain();
    }
    end_line();
    next_line();
    return value;
  }

  // Lines of a block scalar, which no key of interest has: its text is left out.
  YamlValue block_scalar(size_t indent, int depth) {
    count(depth);
    while (!at_end()) {
      while (!at_end() && here() != '\n') ++at_;
      const size_t line = at_;
      while (!at_end() && (is_break(here()) || here() == ' ')) ++at_;
      if (at_end() || column() > indent) continue;
      at_ = line;
      break;
    }
    next_line();
    return {};
  }

  // Characters that begin what is not supported.
  void refuse_indicators() const {
    if (std::string_view("&*!").find(here()) != std::string_view::npos)
      fail("an anchor, alias or tag, which is not supported");
    if (std::string_view("%@`,]}").find(here()) != std::string_view::npos)
      fail(concat("'", here(), "', expected a value"));
    if ((here() == '-' || here() == '?' || here() == ':') && blank_at(at_ + 1))
      fail(concat("'", here(), "' where a value of one line is expected"));
  }

  static std::string trimmed(std::string_view text) {
    while (!text.empty() && (is_blank(text.back()) || is_break(text.back()))) text.remove_suffix(1);
    return std::string(text);
  }

  // A plain scalar up to the end of its line.
  std::string plain() {
    refuse_indicators();
    const size_t begin = at_;
    while (!at_end() && !is_break(here()) && !(here() == '#' && is_blank(text_[at_ - 1]))) {
      if (here() == ':' && blank_at(at_ + 1)) fail("a second ': ' in the line; put the value in quotes");
      ++at_;
    }
    std::string text = trimmed(text_.substr(begin, at_ - begin));
    at_ = begin + text.size();
    return text;
  }

  // A plain scalar inside brackets.
  std::string flow_plain() {
    refuse_indicators();
    const size_t begin = at_;
    while (!at_end() && !is_break(here()) && std::string_view(",[]{}").find(here()) == std::string_view::npos &&
           !(here() == '#' && is_blank(text_[at_ - 1])) &&
           !(here() == ':' &&
             (blank_at(at_ + 1) || std::string_view(",[]{}").find(text_[at_ + 1]) != std::string_view::npos)))
      ++at_;
    return trimmed(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    const char quote = here();
    std::string text;
    for (++at_; !at_end() && !is_break(here()); ++at_) {
      if (here() == quote) {
        ++at_;
        if (quote == '"' || here() != '\'' || at_end()) return text;
      } else if (quote == '"' && here() == '\\') {
        const size_t length = append_escape(text_.substr(at_ + 1), text);
        if (length == 0) fail("an escape that is not supported");
        at_ += length;
        continue;
      }
      text += here();
    }
    fail("a quoted text without an end in its line");
  }

  void skip_in_flow() {
    for (;;) {
      while (!at_end() && (is_blank(here()) || is_break(here()))) ++at_;
      if (here() != '#' || !blank_at(at_ - 1)) break;
      while (!at_end() && !is_break(here())) ++at_;
    }
    if (at_end()) fail("a '[' or '{' without its end");
  }

  YamlValue flow(int depth) {
    count(depth);
    const bool is_list = here() == '[';
    const char end = is_list ? ']' : '}';
    YamlValue value{.kind = is_list ? Kind::list : Kind::map};
    std::set<std::string> keys;
    ++at_;
    for (;;) {
      skip_in_flow();
      if (here() == end) break;
      YamlValue first = flow_value(depth);
      skip_in_flow();
      if (is_list) {
        if (here() == ':') fail("a map inside '[', put it in braces");
        value.items.push_back(std::move(first));
      } else {
        if (first.kind != Kind::scalar) fail("a key that is a list or map");
        if (!keys.insert(first.text).second) fail(concat("the key '", first.text, "' a second time"));
        YamlValue inner;
        if (here() == ':') {
          ++at_;
          skip_in_flow();
          if (here() != ',' && here() != end) inner = flow_value(depth);
          skip_in_flow();
        }
        value.entries.emplace_back(std::move(first.text), std::move(inner));
      }
      if (here() == ',')
        ++at_;
      else if (here() != end)
        fail(concat("'", here(), "', expected ',' or '", end, "'"));
    }
    ++at_;
    return value;
  }

  YamlValue flow_value(int depth) {
    if (here() == '[' || here() == '{') return flow(depth + 1);
    count(depth);
    return {.text = here() == '"' || here() == '\'' ? quoted() : flow_plain()};
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0, values_ = 0;
};

}  // namespace

const YamlValue* YamlValue::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, [](const auto& entry) -> std::string_view { return entry.first; });
  return found == entries.end() ? nullptr : &found->second;
}

YamlValue parse_yaml(std::string_view text, const std::string& where) { return YamlParser(text, where).parse(); }

}  // namespace dtrain::data::annotations
