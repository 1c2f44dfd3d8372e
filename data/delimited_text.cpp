#include "data/delimited_text.h"

#include <algorithm>

#include "dtrain/core/error.h"
#include "libdtrain/io/utf8.h"

namespace dtrain::data {

DelimitedText::DelimitedText(std::string_view text, char separator) : text_(text), separator_(separator) {
  if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
}

void DelimitedText::skip_line_end() {
  if (text_.empty()) return;
  text_.remove_prefix(text_.starts_with("\r\n") ? 2 : 1);
  ++line_;
}

bool DelimitedText::next(DelimitedRow& row) {
  while (!text_.empty() && at_line_end()) skip_line_end();
  row = {.line = line_};
  if (text_.empty()) return false;
  for (bool more = true; more && row.fault.empty();) {
    DelimitedField& field = row.fields.emplace_back();
    row.fault = read(field);
    if (row.fault.empty() && field.text.find('\0') != std::string::npos) row.fault = "a NUL byte";
    if (row.fault.empty() && !is_utf8(field.text)) row.fault = "text that is not UTF-8";
    if (row.fields.size() > kMostFields) row.fault = concat("more than ", kMostFields, " fields");
    if (!row.fault.empty()) row.fault += concat(" (field ", row.fields.size(), ")");
    more = !at_line_end();
    if (more && row.fault.empty()) text_.remove_prefix(1);
  }
  if (!row.fault.empty()) text_.remove_prefix(std::min(text_.find_first_of("\r\n"), text_.size()));
  skip_line_end();
  return true;
}

std::string DelimitedText::read(DelimitedField& field) {
  if (text_.starts_with('"')) return read_quoted(field);
  const char ends[] = {separator_, '\n', '\r'};
  const size_t length = std::min(text_.find_first_of(std::string_view(ends, sizeof ends)), text_.size());
  field.text = text_.substr(0, length);
  text_.remove_prefix(length);
  return "";
}

std::string DelimitedText::read_quoted(DelimitedField& field) {
  field.quoted = true;
  text_.remove_prefix(1);
  while (true) {
    const size_t quote = text_.find('"');
    const std::string_view part = text_.substr(0, quote);
    if (quote == std::string_view::npos) {
      text_ = {};
      return concat("a quote that is not closed, so that the last ", part.size(), " bytes of the file are not read");
    }
    field.text += part;
    for (size_t i = 0; i < part.size(); ++i)
      line_ += part[i] == '\n' || (part[i] == '\r' && (i + 1 == part.size() || part[i + 1] != '\n'));
    text_.remove_prefix(quote + 1);
    if (!text_.starts_with('"')) break;
    field.text += '"';
    text_.remove_prefix(1);
  }
  return at_line_end() || text_.front() == separator_ ? "" : "text after a closing quote";
}

}  // namespace dtrain::data
