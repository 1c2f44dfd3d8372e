// Comma- or tab-separated values, as RFC 4180 and Python's csv module define them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data {

struct DelimitedField {
  std::string text{};
  bool quoted = false;
};

struct DelimitedRow {
  size_t line = 0;  // 1-based, where the row begins
  std::vector<DelimitedField> fields{};
  std::string fault{};  // reason why the row is malformed; its fields are then incomplete
};

// Reads rows from a text, which outlives it. A byte order mark and blank lines are skipped. Lines end with LF, CRLF or
// CR. Quoted fields contain separators and line breaks, and `""` for a quote.
class DelimitedText {
 public:
  DelimitedText(std::string_view text, char separator);
  // Reads the next row; false at the end. Malformed: text after a closing quote, a quote that is not closed, a NUL
  // byte, a field that is not UTF-8, more than kMostFields fields.
  bool next(DelimitedRow& row);

  static constexpr size_t kMostFields = 100'000;

 private:
  bool at_line_end() const { return text_.empty() || text_.front() == '\n' || text_.front() == '\r'; }
  void skip_line_end();
  // Reads one field, up to its separator or line end. Returns the reason why it is malformed, else "".
  std::string read(DelimitedField& field);
  std::string read_quoted(DelimitedField& field);

  std::string_view text_;
  char separator_;
  size_t line_ = 1;
};

}  // namespace dtrain::data
