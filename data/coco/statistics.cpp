// Summary metrics of an evaluation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"
#include "dtrain/data/coco/evaluate.h"

namespace dtrain::data::coco {
namespace {

// Mean over values other than -1; -1 without any.
class Mean {
 public:
  void add(double value) {
    if (value <= -1) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? -1 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  uint64_t count_ = 0;
};

struct Query {
  bool precision;
  double iou;  // 0: all thresholds
  std::string_view area;
  size_t limit;  // index into max_detections
};

constexpr size_t kNoArea = SIZE_MAX;

size_t area_index(const EvaluationOptions& options, std::string_view name) {
  const auto at = std::find_if(options.areas.begin(), options.areas.end(),
                               [&](const AreaRange& area) { return area.name == name; });
  return at == options.areas.end() ? kNoArea : static_cast<size_t>(at - options.areas.begin());
}

bool is_asked(const Query& query, double threshold) { return query.iou == 0 || std::abs(threshold - query.iou) < 1e-9; }

double mean(const DetectionMetrics& evaluation, const Query& query, size_t area) {
  const EvaluationOptions& options = evaluation.options;
  const size_t rows = query.precision ? options.recall_thresholds.size() : 1;
  std::vector<const PrecisionRecall*> categories;
  for (const PrecisionRecall& one : evaluation.curves)
    if (!one.recall.empty()) categories.push_back(&one);
  // pycocotools' summation order, which decides the last bits: categories vary faster than recall thresholds.
  Mean mean;
  for (size_t t = 0; t < options.iou_thresholds.size(); ++t) {
    if (!is_asked(query, options.iou_thresholds[t])) continue;
    const size_t curve = evaluation.curve(area, query.limit, t);
    for (size_t r = 0; r < rows; ++r)
      for (const PrecisionRecall* one : categories)
        mean.add(query.precision ? one->precision(curve, r) : one->recall[curve]);
  }
  return mean.value();
}

std::string why_absent(const DetectionMetrics& evaluation, const Query& query, size_t area) {
  if (area == kNoArea) return fmt::format("no range of areas has the name {}", query.area);
  const EvaluationOptions& options = evaluation.options;
  if (std::none_of(options.iou_thresholds.begin(), options.iou_thresholds.end(),
                   [&](double threshold) { return is_asked(query, threshold); }))
    return fmt::format("{} is none of the IoU thresholds", query.iou);
  const auto has_truths = [&](size_t index) {
    for (size_t i = index; i < evaluation.truths.size(); i += options.areas.size())
      if (evaluation.truths[i] > 0) return true;
    return false;
  };
  for (size_t i = 0; i < options.areas.size(); ++i)
    if (has_truths(i)) return fmt::format("no ground truth of area {}", query.area);
  return "no ground truth";
}

std::string title(const EvaluationOptions& options, const Query& query) {
  const std::string iou =
      query.iou > 0 ? fmt::format("{:.2f}", query.iou)
                    : fmt::format("{:.2f}:{:.2f}", options.iou_thresholds.front(), options.iou_thresholds.back());
  return fmt::format("{:<18} {} @[ IoU={:<9} | area={:>6} | maxDets={:>3} ]",
                     query.precision ? "Average Precision" : "Average Recall", query.precision ? "(AP)" : "(AR)", iou,
                     query.area, options.max_detections[query.limit]);
}

}  // namespace

std::vector<double> linspace(double first, double last, size_t count) {
  DT_CHECK(count >= 2, "linspace: ", count, " numbers, expected at least 2");
  const double step = (last - first) / static_cast<double>(count - 1);
  std::vector<double> values(count, last);
  for (size_t i = 0; i + 1 < count; ++i) values[i] = static_cast<double>(i) * step + first;
  return values;
}

double PrecisionRecall::precision(size_t curve, size_t recall_threshold) const {
  if (recall.empty() || recall[curve] < 0) return -1;
  const std::span<const Step> all(steps.data() + (curve == 0 ? 0 : ends[curve - 1]), steps.data() + ends[curve]);
  const auto step =
      std::ranges::partition_point(all, [&](const Step& one) { return size_t{one.end} <= recall_threshold; });
  return step == all.end() ? 0 : step->precision;
}

std::vector<Statistic> DetectionMetrics::statistics() const {
  const size_t last = options.max_detections.size() - 1;
  std::vector<std::pair<std::string, Query>> queries = {
      {"AP", {true, 0, "all", last}},    {"AP50", {true, .5, "all", last}},  {"AP75", {true, .75, "all", last}},
      {"APs", {true, 0, "small", last}}, {"APm", {true, 0, "medium", last}}, {"APl", {true, 0, "large", last}},
  };
  for (size_t limit = 0; limit <= last; ++limit)
    queries.push_back({fmt::format("AR{}", options.max_detections[limit]), {false, 0, "all", limit}});
  for (const char* area : {"small", "medium", "large"})
    queries.push_back({fmt::format("AR{}", area[0]), {false, 0, area, last}});
  std::vector<Statistic> statistics;
  for (const auto& [name, query] : queries) {
    const size_t area = area_index(options, query.area);
    Statistic& one = statistics.emplace_back(name, title(options, query));
    if (area != kNoArea) one.value = mean(*this, query, area);
    if (one.value == -1) one.why_absent = why_absent(*this, query, area);
  }
  return statistics;
}

double DetectionMetrics::average_precision(size_t category) const {
  Mean mean;
  for (size_t t = 0; t < options.iou_thresholds.size(); ++t)
    for (size_t r = 0; r < options.recall_thresholds.size(); ++r)
      mean.add(curves[category].precision(curve(0, options.max_detections.size() - 1, t), r));
  return mean.value();
}

}  // namespace dtrain::data::coco
