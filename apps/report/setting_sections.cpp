#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "apps/cli/html.h"
#include "apps/report/sections.h"

namespace dtrain::report {
namespace {

using cli::html_text;

Table settings_table(const Runs& runs, const std::string& caption) {
  Table table{.caption = caption, .columns = {"Setting"}};
  for (const RunData& run : runs) table.columns.push_back(run.name);
  return table;
}

std::string card_of(const Sample& sample) {
  std::string lines;
  for (const std::string& line : sample.lines)
    lines += fmt::format("{}{}", lines.empty() ? "" : "<br>", html_text(line));
  const std::string name = html_text(sample.name), verdict = html_text(sample.verdict);
  const std::string picture =
      sample.source.empty()
          ? "<p>The image could not be read.</p>"
          : fmt::format("<img src=\"{}\" width=\"{}\" height=\"{}\" decoding=\"async\" alt=\"{}: {}\">", sample.source,
                        sample.width, sample.height, name, verdict);
  return fmt::format("<figure class=\"sample\">{}<figcaption>{}<br>{}</figcaption><p>{}</p></figure>\n", picture, name,
                     verdict, lines);
}

std::string list_of(const char* title, const std::vector<Sample>& samples) {
  if (samples.empty()) return "";
  std::string out = fmt::format("<h4>{}</h4>\n<div class=\"grid\">\n", title);
  for (const Sample& sample : samples) out += card_of(sample);
  return out + "</div>\n";
}

}  // namespace

std::string setting_section(const Runs& runs) {
  std::set<std::string> keys;
  for (const RunData& run : runs)
    for (const auto& [key, value] : run.settings) keys.insert(key);
  if (keys.empty()) return "";
  Table differing = settings_table(runs, "Settings that differ"), all = settings_table(runs, "All settings");
  for (const std::string& key : keys) {
    std::vector<std::string> row = {key};
    for (const RunData& run : runs) {
      const auto found = run.settings.find(key);
      row.push_back(found == run.settings.end() ? "-" : found->second);
    }
    const bool differs =
        std::ranges::any_of(row.begin() + 1, row.end(), [&](const auto& one) { return one != row[1]; });
    all.rows.push_back(row);
    all.classes.emplace_back(differs ? "differs" : "");
    if (differs) differing.rows.push_back(std::move(row));
  }
  std::string out;
  if (runs.size() > 1)
    out = differing.rows.empty() ? "<p>The runs have the same settings.</p>\n"
                                 : "<h3>Differences</h3>\n<div class=\"scroll\">" + to_html(differing) + "</div>\n";
  return out + fmt::format("<details{}><summary>All {} settings</summary><div class=\"scroll\">{}</div></details>\n",
                           runs.size() > 1 ? "" : " open", keys.size(), to_html(all));
}

std::string sample_section(const Runs& runs) {
  std::string out;
  for (const RunData& run : runs)
    for (const Samples& samples : run.samples) {
      out += "<h3>" + html_text(run.name + ": " + samples.title) + "</h3>\n";
      for (const std::string& note : samples.notes) out += "<p>" + html_text(note) + "</p>\n";
      out += list_of("Worst images", samples.worst) + list_of("Best images", samples.best);
      if (samples.classes.empty()) continue;
      out += to_html(Table{.caption = "Precision of each class, in per cent",
                           .columns = {"Class", "Objects", "Box AP", "Mask AP"},
                           .rows = samples.classes});
    }
  return out;
}

}  // namespace dtrain::report
