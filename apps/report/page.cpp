#include "apps/report/page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/html.h"

namespace dtrain::report {

using cli::html_text;

namespace {

constexpr std::string_view kHead = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
constexpr std::string_view kGenerator = "<meta name=\"generator\" content=\"dtrain-report\">\n";
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
    "'unsafe-inline'; script-src 'unsafe-inline'\">\n";

}  // namespace

bool is_page(std::string_view begin) {
  if (!begin.starts_with(kHead)) return false;
  begin.remove_prefix(kHead.size());
  return begin.starts_with(kGenerator) || begin.starts_with(kPolicy);
}

std::string to_page(const std::string& title, const std::vector<Section>& sections) {
  std::string links, bodies;
  for (const Section& section : sections) {
    if (section.body.empty()) continue;
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, html_text(section.title));
    bodies += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n",
        section.id, html_text(section.title), section.body);
  }
  return fmt::format(
      "{5}{6}{7}"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#report\">To the report</a>\n<header>\n<h1>{0}</h1>\n"
      "<nav aria-label=\"Sections\"><ul>\n{2}</ul></nav>\n</header>\n<main id=\"report\">\n{3}</main>\n"
      "<script>{4}</script>\n</body>\n</html>\n",
      html_text(title), page_style(), links, bodies, page_script(), kHead, kGenerator, kPolicy);
}

std::string to_html(const Table& table) {
  std::string out = "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"" + html_text(table.caption) +
                    "\"><table>\n<caption>" + html_text(table.caption) + "</caption>\n<thead><tr>";
  for (const std::string& column : table.columns) out += "<th scope=\"col\">" + html_text(column) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const bool has_class = i < table.classes.size() && !table.classes[i].empty();
    out += has_class ? "<tr class=\"" + html_text(table.classes[i]) + "\">" : "<tr>";
    bool names = true;
    for (const std::string& cell : table.rows[i]) {
      out += fmt::format("{}{}{}", names ? "<th scope=\"row\">" : "<td>", html_text(cell), names ? "</th>" : "</td>");
      names = false;
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string script_text(std::string_view text) {
  std::string out;
  for (const char c : nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out;
}

}  // namespace dtrain::report
