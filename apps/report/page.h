// The frame of a report: one page of HTML that needs nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::report {

struct Section {
  std::string id{}, title{};
  std::string body{};  // HTML; a section without any is left out
};

// Whether a file that begins so is such a page. Those of older versions name no generator.
bool is_page(std::string_view begin);
inline constexpr size_t kPageBegin = 512;  // bytes that tell

// A page of UTF-8 with its style and script inside, which may load nothing from elsewhere.
std::string to_page(const std::string& title, const std::vector<Section>& sections);

// A table; the first cell of a row names it. Cells are texts, not HTML.
struct Table {
  std::string caption{};
  std::vector<std::string> columns{};
  std::vector<std::vector<std::string>> rows{};
  std::vector<std::string> classes{};  // of the rows, empty or one for each
};
std::string to_html(const Table& table);

// A string of JSON that may stand in a script of a page: no tag ends or begins within it.
std::string script_text(std::string_view text);

// What the page looks like and does.
std::string_view page_style();
std::string_view page_script();

}  // namespace dtrain::report
