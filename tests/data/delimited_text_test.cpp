// Comma- and tab-separated text: quoting, line ends, malformed rows.
#include "data/delimited_text.h"

#include <string>
#include <vector>

#include "tests/testing.h"

namespace dtrain::data {
namespace {

// Rows as "LINE|FIELD|FIELD", or "LINE!FAULT".
std::vector<std::string> rows_of(const std::string& text, char separator = ',') {
  std::vector<std::string> lines;
  DelimitedText rows(text, separator);
  for (DelimitedRow row; rows.next(row);) {
    std::string line = std::to_string(row.line);
    if (row.fault.empty())
      for (const DelimitedField& field : row.fields) line += "|" + field.text;
    else
      line += "!" + row.fault;
    lines.push_back(line);
  }
  return lines;
}

using Rows = std::vector<std::string>;

TEST(DelimitedText, ReadsRows) {
  EXPECT_EQ(rows_of(""), Rows{});
  EXPECT_EQ(rows_of("a,b\nc"), (Rows{"1|a|b", "2|c"}));
  EXPECT_EQ(rows_of("\xef\xbb\xbf"
                    "a,b\r\nc,\r\n"),
            (Rows{"1|a|b", "2|c|"}));
  EXPECT_EQ(rows_of("a\rb\r\rc"), (Rows{"1|a", "2|b", "4|c"}));
  EXPECT_EQ(rows_of("\n\n,\n"), (Rows{"3||"}));
  EXPECT_EQ(rows_of("a,b\tc", '\t'), (Rows{"1|a,b|c"}));
  EXPECT_EQ(rows_of(" a , \"b\""), (Rows{"1| a | \"b\""}));
}

TEST(DelimitedText, ReadsQuotes) {
  EXPECT_EQ(rows_of("\"a,b\",\"c\"\"d\"\n\"\",e\n"), (Rows{"1|a,b|c\"d", "2||e"}));
  EXPECT_EQ(rows_of("\"a\r\nb\nc\",d\ne"), (Rows{"1|a\r\nb\nc|d", "4|e"}));
  EXPECT_EQ(rows_of("5\" disk.jpg,b"), (Rows{"1|5\" disk.jpg|b"}));
}

TEST(DelimitedText, ReportsMalformedRows) {
  EXPECT_EQ(rows_of("a\n\"b\" c,d\ne"), (Rows{"1|a", "2!text after a closing quote (field 1)", "3|e"}));
  EXPECT_EQ(rows_of("a,\"b\nc"),
            (Rows{"1!a quote that is not closed, so that the last 3 bytes of the file are not read (field 2)"}));
  EXPECT_EQ(rows_of(std::string("a\0b,c\nd", 7)), (Rows{"1!a NUL byte (field 1)", "2|d"}));
  EXPECT_EQ(rows_of("a,\xff\nd"), (Rows{"1!text that is not UTF-8 (field 2)", "2|d"}));
  const std::string many(DelimitedText::kMostFields, ',');
  EXPECT_EQ(rows_of(many + "\nd"), (Rows{"1!more than 100000 fields (field 100001)", "2|d"}));
}

TEST(DelimitedText, ChecksUtf8) {
  for (const char* good : {"\xc3\xbc", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(rows_of(good), Rows{std::string("1|") + good});
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"})
    EXPECT_EQ(rows_of(bad), Rows{"1!text that is not UTF-8 (field 1)"});
}

}  // namespace
}  // namespace dtrain::data
