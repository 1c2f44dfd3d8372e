#include "apps/mask_rcnn/gallery.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/html.h"
#include "libdtrain/io/result_file.h"

namespace dtrain::mask_rcnn {
namespace {

using cli::html_text;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #fff; --text: #1b1f27; --faint: #5b6472;
  --line: #dfe3e9; --mat: #e8ebf0; --bar: #2563c9; --good: #11703a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #13161b; --card: #1d2128; --text: #e7eaf0; --faint: #9aa4b2;
  --line: #313742; --mat: #0c0e12; --bar: #6ea2f5; --good: #5ecb8b; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1600px; padding: 24px clamp(12px, 3vw, 40px) 48px; background: var(--ground);
  color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { margin: 0 0 4px; font-size: 26px; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 36px 0 12px; font-size: 19px; }
p { margin: 0; color: var(--faint); overflow-wrap: anywhere; }
.grid { display: grid; gap: 16px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 360px), 1fr)); }
figure { margin: 0; overflow: hidden; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
figure a, figure img { display: block; width: 100%; }
figure img { height: auto; aspect-ratio: 4 / 3; object-fit: contain; background: var(--mat); }
.broad { grid-template-columns: repeat(auto-fill, minmax(min(100%, 560px), 1fr)); }
.broad img { aspect-ratio: 12 / 5; }
@media (max-width: 640px) { .broad img { aspect-ratio: auto; } }
figcaption { padding: 10px 14px 12px; }
.head { display: flex; gap: 12px; justify-content: space-between; align-items: baseline; font-weight: 600; }
.name { overflow-wrap: anywhere; }
.score { flex: none; font-variant-numeric: tabular-nums; }
.counts { display: flex; flex-wrap: wrap; gap: 0 14px; color: var(--faint); font-size: 14px; }
.counts b { font-variant-numeric: tabular-nums; }
.hits b { color: var(--good); }
.misses b { color: var(--bad); }
.table { overflow-x: auto; max-width: 860px; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 7px clamp(8px, 1.5vw, 14px); text-align: right; border-top: 1px solid var(--line); white-space: nowrap; }
thead th { border-top: 0; color: var(--faint); font-size: 13px; font-weight: 600; }
th:first-child { min-width: 8em; text-align: left; white-space: normal; overflow-wrap: anywhere; }
tbody th { font-weight: 500; }
.value { display: inline-block; min-width: 3em; }
.bar { display: inline-block; width: clamp(40px, 12vw, 140px); height: 8px; margin-right: 10px; overflow: hidden;
  background: var(--line); border-radius: 4px; vertical-align: 1px; }
@media (max-width: 520px) { .bar { display: none; } }
.bar i { display: block; height: 100%; background: var(--bar); }
)";

// Zero counts are not coloured.
std::string counted(int64_t objects, std::string_view kind, std::string_view word) {
  return fmt::format("<span{}><b>{}</b> {}</span>", objects > 0 ? fmt::format(" class=\"{}\"", kind) : "", objects,
                     word);
}

std::string size_of(const GalleryImage& image) {
  return image.width > 0 ? fmt::format(" width=\"{}\" height=\"{}\"", image.width, image.height) : "";
}

std::string card(const GalleryImage& image, const std::string& score_name) {
  const std::string name = html_text(image.file_name), source = html_text(image.source);
  const std::string picture =
      fmt::format("<img src=\"{}\" alt=\"Objects found in {}\" loading=\"lazy\"{}>", source, name, size_of(image));
  const bool embedded = image.source.starts_with("data:");  // browsers reject such pages
  return fmt::format(
      "<figure>\n{}\n<figcaption>\n<div class=\"head\"><span class=\"name\">{}</span>"
      "<span class=\"score\">{} {:.3f}</span></div>\n<div class=\"counts\">{}{}{}</div>\n</figcaption>\n</figure>\n",
      embedded ? picture : fmt::format("<a href=\"{}\">{}</a>", source, picture), name, html_text(score_name),
      image.score, counted(image.hits, "hits", "found"), counted(image.misses, "misses", "missed"),
      counted(image.false_alarms, "misses", "false"));
}

std::string image_section(std::string_view title, const std::vector<GalleryImage>& images,
                          const std::string& score_name) {
  if (images.empty()) return "";
  // Pictures with several panels need more width.
  const bool broad = std::ranges::any_of(images, [](const GalleryImage& one) { return one.width > 2 * one.height; });
  std::string out = fmt::format("<section>\n<h2>{}</h2>\n<div class=\"grid{}\">\n", title, broad ? " broad" : "");
  for (const GalleryImage& image : images) out += card(image, score_name);
  return out + "</div>\n</section>\n";
}

bool has(const std::optional<double>& precision) { return precision && *precision >= 0; }

std::string precision_cell(const std::optional<double>& precision) {
  if (!has(precision)) return "<td>&ndash;</td>";
  const double percent = 100 * std::min(*precision, 1.0);
  return fmt::format(
      "<td><span class=\"bar\"><i style=\"width:{0:.1f}%\"></i></span><span class=\"value\">{0:.1f}</span></td>",
      percent);
}

std::string class_table(const std::vector<ClassPrecision>& classes) {
  if (classes.empty()) return "";
  const auto any = [&](auto member) {
    return std::any_of(classes.begin(), classes.end(), [&](const ClassPrecision& row) { return has(row.*member); });
  };
  const bool boxes = any(&ClassPrecision::box_ap), masks = any(&ClassPrecision::mask_ap);
  std::string out = fmt::format(
      "<section>\n<h2>Average precision of each class, in per cent</h2>\n<div class=\"table\"><table>\n"
      "<thead><tr><th scope=\"col\">Class</th><th scope=\"col\">Objects</th>{}{}</tr></thead>\n<tbody>\n",
      boxes ? "<th scope=\"col\">Box AP</th>" : "", masks ? "<th scope=\"col\">Mask AP</th>" : "");
  for (const ClassPrecision& row : classes)
    out += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>{}{}</tr>\n", html_text(row.name), row.objects,
                       boxes ? precision_cell(row.box_ap) : "", masks ? precision_cell(row.mask_ap) : "");
  return out + "</tbody>\n</table></div>\n</section>\n";
}

}  // namespace

std::string relative_source(std::string_view path) {
  std::string out = "./";  // otherwise a colon would end a URL scheme, and a leading slash mean the root
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return out;
}

std::string embedded_source(std::span<const std::byte> png) { return cli::data_uri("image/png", png); }

std::string to_html(const Gallery& gallery) {
  const std::string title = html_text(gallery.title);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{0}</h1>\n",
      title, kStyle);
  for (const std::string& note : gallery.notes) out += fmt::format("<p>{}</p>\n", html_text(note));
  out += "</header>\n<main>\n";
  out += image_section("Worst images", gallery.worst, gallery.score_name);
  out += image_section("Best images", gallery.best, gallery.score_name);
  return out + class_table(gallery.classes) + "</main>\n</body>\n</html>\n";
}

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<GalleryImage>& images) {
  Json all = Json::array();
  for (const GalleryImage& image : images)
    all.push_back({{"file_name", image.file_name},
                   {"picture", image.path},
                   {"score", image.score},
                   {"found", image.hits},
                   {"missed", image.misses},
                   {"false", image.false_alarms}});
  return all;
}

Json json_of(const Gallery& gallery) {
  Json classes = Json::array();
  const auto precision = [](const std::optional<double>& one) { return one ? Json(*one) : Json(); };
  for (const ClassPrecision& row : gallery.classes)
    classes.push_back({{"name", row.name},
                       {"objects", row.objects},
                       {"box_ap", precision(row.box_ap)},
                       {"mask_ap", precision(row.mask_ap)}});
  return {{"title", gallery.title},          {"notes", gallery.notes},        {"score_name", gallery.score_name},
          {"worst", json_of(gallery.worst)}, {"best", json_of(gallery.best)}, {"classes", classes}};
}

void write_file(const std::string& path, const std::string& text) {
  ResultFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace

void write_gallery(const std::string& folder, const Gallery& gallery) {
  write_file(folder + "/index.html", to_html(gallery));
  write_file(folder + "/gallery.json", json_of(gallery).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace dtrain::mask_rcnn
