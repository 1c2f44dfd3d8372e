// Frame of a report: a self-contained HTML page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::report {

struct Section {
  std::string id{}, title{};
  std::string body{};  // HTML; empty sections are skipped
};

// Whether a file with this beginning is a report. Older versions have no generator tag.
bool is_page(std::string_view begin);
inline constexpr size_t kPageBegin = 512;  // bytes needed to decide

// UTF-8 page with inline style and script; its policy forbids external resources.
std::string to_page(const std::string& title, const std::vector<Section>& sections);

// A table; the first cell of a row is its header. Cells are plain text.
struct Table {
  std::string caption{};
  std::vector<std::string> columns{};
  std::vector<std::vector<std::string>> rows{};
  std::vector<std::string> classes{};  // CSS classes of the rows; empty, or one per row
};
std::string to_html(const Table& table);

// A JSON string that is safe within a script element: contains no tags.
std::string script_text(std::string_view text);

// Style and script of the page.
std::string_view page_style();
std::string_view page_script();

}  // namespace dtrain::report
