#include "apps/dataset/problems.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/html.h"
#include "apps/cli/messages.h"

namespace dtrain::dataset {
namespace {

std::string totals(const CheckResult& result) {
  return fmt::format("{} files, {} images, {} records, {} faults", result.files, result.images, result.records,
                     result.faults());
}

constexpr char kCheckStyle[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "h2{margin:2rem 0 .5rem;font-size:1.1rem}li{overflow-wrap:anywhere}.reason{color:#555}"
    "figure{display:inline-block;margin:.5rem;width:11rem;vertical-align:top;font-size:.8rem;overflow-wrap:anywhere}"
    "img{max-width:11rem;max-height:11rem;border:1px solid #ccc}";

}  // namespace

void FileProblems::add(const std::string& kind, const std::string& file, std::string reason, bool is_fault) {
  if (reason.starts_with(file + ": ")) reason.erase(0, file.size() + 2);
  problems.push_back({.kind = kind, .file = file, .reason = std::move(reason), .is_fault = is_fault});
}

uint64_t CheckResult::faults() const {
  uint64_t faults = 0;
  for (const Kind& kind : kinds) faults += kind.is_fault ? kind.count : 0;
  return faults;
}

CheckResult summarize(const std::vector<FileProblems>& findings, size_t files, size_t examples) {
  CheckResult result{.files = files};
  for (const FileProblems& found : findings) {
    result.images += found.images;
    result.records += found.records;
    for (const Problem& problem : found.problems) {
      auto kind = std::ranges::find(result.kinds, problem.kind, &CheckResult::Kind::name);
      if (kind == result.kinds.end())
        kind = result.kinds.insert(kind, CheckResult::Kind{.name = problem.kind, .is_fault = problem.is_fault});
      kind->count += problem.count;
      if (kind->examples.size() < examples) kind->examples.push_back(problem);
    }
  }
  std::ranges::stable_sort(result.kinds, [](const CheckResult::Kind& a, const CheckResult::Kind& b) {
    return a.is_fault != b.is_fault ? a.is_fault : a.count > b.count;
  });
  return result;
}

std::string as_text(const CheckResult& result) {
  std::string text;
  for (const CheckResult::Kind& kind : result.kinds) {
    text += fmt::format("{}: {}{}\n", kind.name, kind.count, kind.is_fault ? "" : " (no fault)");
    for (const Problem& problem : kind.examples)
      text += fmt::format("  {}: {}\n", cli::escaped(problem.file), cli::escaped(problem.reason));
    if (kind.count > kind.examples.size()) text += fmt::format("  and {} more\n", kind.count - kind.examples.size());
  }
  return text + totals(result) + "\n";
}

std::string as_json(const CheckResult& result) {
  nlohmann::ordered_json json = {{"files", result.files},
                                 {"images", result.images},
                                 {"records", result.records},
                                 {"faults", result.faults()},
                                 {"kinds", nlohmann::ordered_json::array()}};
  for (const CheckResult::Kind& kind : result.kinds) {
    nlohmann::ordered_json examples = nlohmann::ordered_json::array();
    for (const Problem& problem : kind.examples)
      examples.push_back({{"file", problem.file}, {"reason", problem.reason}});
    json["kinds"].push_back(
        {{"kind", kind.name}, {"fault", kind.is_fault}, {"count", kind.count}, {"examples", std::move(examples)}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string as_html(const CheckResult& result, const std::string& title) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style>\n"
      "<h1>{0}</h1><p>{2}</p>\n",
      cli::html_text(title), kCheckStyle, totals(result));
  for (const CheckResult::Kind& kind : result.kinds) {
    page += fmt::format("<h2>{}: {}{}</h2>\n<ul>\n", cli::html_text(kind.name), kind.count,
                        kind.is_fault ? "" : " (no fault)");
    for (const Problem& problem : kind.examples)
      page += fmt::format("<li>{} <span class=\"reason\">{}</span></li>\n", cli::html_text(problem.file),
                          cli::html_text(problem.reason));
    page += "</ul>\n";
    if (kind.count > kind.examples.size())
      page += fmt::format("<p>and {} more</p>\n", kind.count - kind.examples.size());
    for (const Problem& problem : kind.examples)
      if (!problem.thumbnail.empty())
        page += fmt::format("<figure><img alt=\"\" src=\"{}\"><figcaption>{}</figcaption></figure>\n",
                            cli::data_uri("image/jpeg", problem.thumbnail), cli::html_text(problem.file));
  }
  return page + "</html>\n";
}

}  // namespace dtrain::dataset
