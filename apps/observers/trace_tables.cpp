#include "apps/observers/trace_tables.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "libdtrain/io/result_file.h"

namespace dtrain::observers {
namespace {

double milliseconds(TraceFile::Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace

std::string rate(double amount, double seconds) {
  if (amount <= 0 || seconds <= 0) return "-";
  const double billions = amount / seconds / 1e9;
  return fmt::format("{:.{}f}", billions, billions < 10 ? 3 : billions < 100 ? 2 : 1);
}

std::vector<std::string> profile_lines(std::span<const WorkRecord> records, bool by_layer, size_t rows) {
  const double total = step_seconds(records);
  std::vector<ProfileRow> all = profile_rows(records, by_layer ? ProfileBy::layer : ProfileBy::op);
  std::vector<std::string> lines = {
      fmt::format("Profile of {} steps, {:.3f} ms: {} of {} {}", step_count(records), 1e3 * total,
                  std::min(rows, all.size()), all.size(), by_layer ? "ops by layer" : "ops"),
      fmt::format("{:<28} {:<9} {:>7} {:>11} {:>7} {:>9} {:>8}{}  Algorithms", "Op", "Phase", "Count", "Total ms",
                  "Share", "GFLOP/s", "GB/s", by_layer ? "  Layer" : "")};
  all.resize(std::min(rows, all.size()));
  for (const ProfileRow& row : all)
    lines.push_back(fmt::format("{:<28} {:<9} {:>7} {:>11.3f} {:>6.1f}% {:>9} {:>8}{}{}{}{}", row.name, row.phase,
                                row.count, 1e3 * row.seconds, 100 * row.seconds / total, rate(row.flops, row.seconds),
                                rate(row.bytes, row.seconds), row.group.empty() ? "" : "  ", row.group,
                                row.algorithms.empty() ? "" : "  ", row.algorithms));
  return lines;
}

std::vector<std::string> whole_profile(std::span<const WorkRecord> records) {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  std::vector<std::string> lines = profile_lines(records, false, kAll);
  lines.emplace_back();
  for (std::string& line : profile_lines(records, true, kAll)) lines.push_back(std::move(line));
  return lines;
}

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  ResultFile file(path);
  for (const std::string& line : lines) file.write(line + "\n");
  file.commit();
}

void write_text(const std::string& path, std::span<const TraceSpan> spans) {
  std::vector<std::string> lines = {"lane\tbegin_ms\tms\tname\tdetails"};
  for (const TraceSpan& span : spans) {
    std::string line = fmt::format("{}\t{:.3f}\t{:.3f}\t{}\t", span.lane, milliseconds(span.begin - spans[0].begin),
                                   milliseconds(span.end - span.begin), span.name);
    const char* separator = "";
    for (const auto& [key, value] : span.args) {
      std::visit([&, &name = key](const auto& known) { line += fmt::format("{}{}={}", separator, name, known); },
                 value);
      separator = " ";
    }
    lines.push_back(line);
  }
  write_lines(path, lines);
}

}  // namespace dtrain::observers
