#include "dtrain/train/profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dtrain {
namespace {

// Nesting: step > phase > rows > kernels > algorithms.
constexpr int kPhaseDepth = 1, kRowDepth = 2, kKernelDepth = 3, kAlgorithmDepth = 4;

std::string shapes_of(const WorkRecord& record) {
  std::string text;
  for (const Shape& shape : record.inputs)
    if (shape.rank() > 1) text += (text.empty() ? "" : " x ") + shape.to_string();
  return text;
}

std::string group_of(const WorkRecord& record, ProfileBy by) {
  return by == ProfileBy::layer ? record.layer() : by == ProfileBy::shapes ? shapes_of(record) : "";
}

// Adds a name to a sorted list.
void add_name(std::string& names, const std::string& name) {
  std::set<std::string> all{name};
  for (size_t begin = 0, end; begin < names.size(); begin = end + 2) {
    end = std::min(names.find(", ", begin), names.size());
    all.insert(names.substr(begin, end - begin));
  }
  names.clear();
  for (const std::string& one : all) names += (names.empty() ? "" : ", ") + one;
}

// "dgrad " or "wgrad " for a kernel of one of these: a backward pass runs both.
std::string pass_of(const std::string& kernel) {
  for (const char* pass : {"dgrad", "wgrad"})
    if (kernel.ends_with(pass)) return concat(pass, " ");
  return "";
}

class Rows {
 public:
  ProfileRow& of(const std::string& name, const std::string& phase, const std::string& group) {
    ProfileRow& row = rows_[{name, phase, group}];
    row.name = name;
    row.phase = phase;
    row.group = group;
    return row;
  }

  std::vector<ProfileRow> sorted() const {
    std::vector<ProfileRow> all;
    for (const auto& [key, row] : rows_) all.push_back(row);
    std::ranges::stable_sort(all, std::greater<>(), &ProfileRow::seconds);
    return all;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, ProfileRow> rows_;
};

}  // namespace

std::vector<ProfileRow> profile_rows(std::span<const WorkRecord> records, ProfileBy by) {
  Rows rows;
  ProfileRow* op = nullptr;  // that the kernels after it belong to
  std::string pass;          // of the kernel that the algorithm after it belongs to
  for (const WorkRecord& record : records) {
    if (record.depth == kKernelDepth) pass = pass_of(record.name);
    if (record.depth == kAlgorithmDepth && op) add_name(op->algorithms, pass + record.name);
    if (record.depth > kRowDepth) continue;
    const bool counts = record.depth == kRowDepth;
    ProfileRow& row = rows.of(counts ? record.name : kOutsideOps, record.phase, counts ? group_of(record, by) : "");
    op = counts && record.level == WorkLevel::op ? &row : nullptr;
    row.count += counts ? 1 : 0;
    row.seconds += record.seconds;
    if (counts) {
      row.flops += record.flops;
      row.bytes += record.bytes;
    }
    // The remaining time belongs to the parent.
    if (counts) rows.of(kOutsideOps, record.phase, "").seconds -= record.seconds;
    if (record.depth == kPhaseDepth) rows.of(kOutsideOps, "", "").seconds -= record.seconds;
  }
  return rows.sorted();
}

int64_t step_count(std::span<const WorkRecord> records) {
  return std::ranges::count(records, WorkLevel::step, &WorkRecord::level);
}

double step_seconds(std::span<const WorkRecord> records) {
  double seconds = 0;
  for (const WorkRecord& record : records)
    if (record.level == WorkLevel::step) seconds += record.seconds;
  return seconds;
}

}  // namespace dtrain
