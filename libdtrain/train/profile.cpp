#include "libdtrain/train/profile.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dtrain {
namespace {

constexpr char kOther[] = "(other)";

// Steps hold phases, and phases what has rows.
constexpr int kPhaseDepth = 1, kRowDepth = 2;

class Rows {
 public:
  explicit Rows(bool by_layer) : by_layer_(by_layer) {}

  ProfileRow& of(const std::string& name, const std::string& phase, const std::string& layer) {
    ProfileRow& row = rows_[{name, phase, by_layer_ ? layer : ""}];
    row.name = name;
    row.phase = phase;
    if (by_layer_) row.layer = layer;
    return row;
  }

  std::vector<ProfileRow> sorted() const {
    std::vector<ProfileRow> all;
    for (const auto& [key, row] : rows_) all.push_back(row);
    std::ranges::stable_sort(all, std::greater<>(), &ProfileRow::seconds);
    return all;
  }

 private:
  const bool by_layer_;
  std::map<std::tuple<std::string, std::string, std::string>, ProfileRow> rows_;
};

}  // namespace

std::vector<ProfileRow> profile_rows(std::span<const WorkRecord> records, bool by_layer) {
  Rows rows(by_layer);
  for (const WorkRecord& record : records) {
    if (record.depth > kRowDepth) continue;
    const bool counts = record.depth == kRowDepth;
    ProfileRow& row = rows.of(counts ? record.name : kOther, record.phase, counts ? record.layer() : "");
    row.count += counts ? 1 : 0;
    row.seconds += record.seconds;
    if (counts) {
      row.flops += record.flops;
      row.bytes += record.bytes;
    }
    // What holds it has done the rest.
    if (counts) rows.of(kOther, record.phase, "").seconds -= record.seconds;
    if (record.depth == kPhaseDepth) rows.of(kOther, "", "").seconds -= record.seconds;
  }
  return rows.sorted();
}

double step_seconds(std::span<const WorkRecord> records) {
  double seconds = 0;
  for (const WorkRecord& record : records)
    if (record.level == WorkLevel::step) seconds += record.seconds;
  return seconds;
}

}  // namespace dtrain
