#include "apps/report/samples.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/html.h"
#include "data/shrink.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/text_lines.h"

namespace dtrain::report {
namespace {

using Json = nlohmann::json;

constexpr int kShorterSide = 320;  // of pictures, in pixels
// Limits of a gallery: images per list, notes, and classes.
constexpr size_t kMostImages = 100, kMostNotes = 100, kMostClasses = 10'000;

std::string text_of(const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  return value.is_string() ? value.get<std::string>() : std::string();
}

double number_of(const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  return value.is_number() ? value.get<double>() : std::nan("");
}

void embed(const std::string& path, Sample& sample, RunData& run) {
  try {
    const std::string bytes = read_text(path, kMaxRecordBytes);
    const data::ShrunkImage small = data::shrink_image(std::as_bytes(std::span(bytes)), {.size = kShorterSide});
    sample.source = cli::data_uri("image/jpeg", small.jpeg);
    sample.width = small.width;
    sample.height = small.height;
  } catch (const Error& error) {
    const std::string what = error.what();
    run.notices.push_back(what.find(path) == what.npos ? path + ": " + what : what);
  }
}

// Calls use(item) for the first items of gallery[key], up to a limit; a notice counts the rest.
template <class Use>
void for_each_of(const Json& gallery, const char* key, size_t most, const std::string& path, RunData& run,
                 const Use& use) {
  const auto& list = gallery.at(key).get_ref<const Json::array_t&>();
  for (size_t i = 0; i < std::min(most, list.size()); ++i) use(list[i]);
  if (list.size() > most)
    run.notices.push_back(
        fmt::format("{}: {} of the {} items of \"{}\" are left out", path, list.size() - most, list.size(), key));
}

std::vector<Sample> gallery_list(const std::string& folder, const Json& gallery, const char* key, RunData& run) {
  std::vector<Sample> samples;
  const std::string score = text_of(gallery, "score_name");
  for_each_of(gallery, key, kMostImages, folder + "/gallery.json", run, [&](const Json& image) {
    Sample& sample = samples.emplace_back();
    sample.name = text_of(image, "file_name");
    sample.verdict = fmt::format("{} {:.2f}", score, number_of(image, "score"));
    sample.lines = {fmt::format("{:.0f} found, {:.0f} missed, {:.0f} false", number_of(image, "found"),
                                number_of(image, "missed"), number_of(image, "false"))};
    const std::filesystem::path picture(text_of(image, "picture"));
    const bool leads_out = std::ranges::find(picture, std::filesystem::path("..")) != picture.end();
    if (picture.empty() || picture.is_absolute() || leads_out)
      run.notices.push_back(
          fmt::format("{}/gallery.json: a picture that is not in the folder: {}", folder, picture.string()));
    else
      embed(folder + "/" + picture.string(), sample, run);
  });
  return samples;
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-"; }

// Image of a line; none for an error line or another format.
struct Prediction {
  std::string file;
  double rank = 0;
  bool has_label = false;
  Sample sample{};
};

// Name of a predicted class, if present, and its index.
std::string title_of(const Json& guess, double number) {
  const std::string name = text_of(guess, "name");
  return name.empty() ? fmt::format("class {:.0f}", number) : fmt::format("{} (class {:.0f})", name, number);
}

std::optional<Prediction> prediction_of(const Json& row) {
  if (!row.contains("top") || !row["top"].is_array() || row["top"].empty()) return std::nullopt;
  Prediction one{.file = text_of(row, "file")};
  const double label = number_of(row, "label");
  one.has_label = std::isfinite(label);
  for (const Json& guess : row["top"]) {
    if (!guess.is_object()) return std::nullopt;
    const double guessed = number_of(guess, "class"), probability = number_of(guess, "probability");
    one.sample.lines.push_back(fmt::format("{}: {} %", title_of(guess, guessed), percent(probability)));
    if (one.has_label ? guessed == label : one.sample.lines.size() == 1) one.rank = probability;
  }
  const double first = number_of(row["top"][0], "class");
  one.sample.name = one.file;
  one.sample.verdict = title_of(row["top"][0], first);
  const std::string expected = text_of(row, "label_name");
  if (one.has_label)
    one.sample.verdict += first == label
                              ? ", right"
                              : fmt::format(", not {}", expected.empty() ? fmt::format("{:.0f}", label) : expected);
  return one;
}

void embed(const std::string& list, Prediction& one, RunData& run) {
  const std::filesystem::path beside = std::filesystem::path(list).parent_path() / one.file;
  std::error_code failure;
  embed(std::filesystem::exists(one.file, failure) ? one.file : beside.string(), one.sample, run);
}

}  // namespace

void read_gallery(const std::string& folder, RunData& run) {
  const std::string path = folder + "/gallery.json", text = read_text(path, JsonLimits{}.bytes);
  const JsonLimits limits{.values = 1'000'000};
  const auto gallery = parse_json<Json>(text, path, Fault::data, limits);
  try {
    Samples samples{.title = text_of(gallery, "title")};
    for_each_of(gallery, "notes", kMostNotes, path, run,
                [&](const Json& note) { samples.notes.push_back(note.get<std::string>()); });
    samples.worst = gallery_list(folder, gallery, "worst", run);
    samples.best = gallery_list(folder, gallery, "best", run);
    for_each_of(gallery, "classes", kMostClasses, path, run, [&](const Json& row) {
      samples.classes.push_back({text_of(row, "name"), fmt::format("{:.0f}", number_of(row, "objects")),
                                 percent(number_of(row, "box_ap")), percent(number_of(row, "mask_ap"))});
    });
    run.samples.push_back(std::move(samples));
  } catch (const Json::exception& error) {
    throw Error(Fault::data, path + ": not what dtrain-mask-rcnn eval --gallery writes: " + error.what());
  }
}

bool is_prediction(const std::string& line) {
  const auto row = parse_json_line<Json>(line);
  return row.is_object() && row.contains("file") && (row.contains("top") || row.contains("error"));
}

void read_predictions(const std::string& path, size_t most, RunData& run) {
  std::vector<Prediction> all;
  size_t failed = 0, right = 0, labelled = 0;
  for_each_line(path, [&](const TextLine& line) {
    if (line.text.empty()) return;
    const auto row = parse_json_line<Json>(line.text);
    if (!row.is_object() || !row.contains("file")) {
      if (line.is_cut) return run.notices.push_back(path + ": skipped the truncated last line");
      throw Error(Fault::data,
                  fmt::format("{}, line {}: expected a line of dtrain-classify --json", path, line.number));
    }
    const auto one = prediction_of(row);
    if (!one) return void(++failed);
    if (one->has_label) ++labelled;
    if (one->sample.verdict.ends_with(", right")) ++right;
    all.push_back(*one);
  });
  std::ranges::stable_sort(all, {}, &Prediction::rank);
  Samples samples{.title = std::filesystem::path(path).filename().string()};
  samples.notes.push_back(fmt::format("{} images{}. They are ranked by the probability of {}.", all.size(),
                                      failed > 0 ? fmt::format(", {} without a prediction", failed) : "",
                                      labelled > 0 ? "their label" : "their most probable class"));
  if (labelled > 0) samples.notes.push_back(fmt::format("{} of {} with a label are right.", right, labelled));
  const size_t half = (all.size() + 1) / 2, ends = std::min(most, half);
  for (size_t i = 0; i < ends; ++i) {
    embed(path, all[i], run);
    samples.worst.push_back(all[i].sample);
  }
  for (size_t i = all.size(); i-- > std::max(half, all.size() - std::min(most, all.size()));) {
    embed(path, all[i], run);
    samples.best.push_back(all[i].sample);
  }
  run.samples.push_back(std::move(samples));
}

}  // namespace dtrain::report
