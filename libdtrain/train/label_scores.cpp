#include "libdtrain/train/label_scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "libdtrain/distributed/read_texts.h"

namespace dtrain {
namespace {

constexpr size_t kBytes = sizeof(float) + 1;            // of a score and target
constexpr size_t kMostGatheredBytes = size_t{4} << 20;  // per rank and collective

using ClassScores = std::vector<std::pair<float, uint8_t>>;

struct Counts {
  uint64_t hits = 0, false_alarms = 0, misses = 0;

  void add(float logit, uint8_t target) {
    hits += logit > 0 && target != 0;
    false_alarms += logit > 0 && target == 0;
    misses += !(logit > 0) && target != 0;
  }
  double f1() const {
    const auto twice = static_cast<double>(2 * hits), all = twice + static_cast<double>(false_alarms + misses);
    return all > 0 ? twice / all : 0;
  }
};

// Sums over classes.
struct Totals {
  Counts counts{};
  double precision = 0, f1 = 0;
  int64_t classes = 0, without_positives = 0;

  void add(ClassScores&& scores) {
    Counts own;
    for (const auto& [logit, target] : scores) {
      own.add(logit, target);
      counts.add(logit, target);
    }
    if (const std::optional<double> average = average_precision(std::move(scores))) {
      ++classes;
      precision += *average;
      f1 += own.f1();
    } else {
      ++without_positives;
    }
  }
  std::vector<MetricValue> values() const {
    const double divisor = static_cast<double>(std::max<int64_t>(classes, 1));
    return {{"mean_average_precision", precision / divisor},
            {"classes_without_positives", static_cast<double>(without_positives)},
            {"micro_f1", counts.f1()},
            {"macro_f1", f1 / divisor}};
  }
};

// Appends a rank's scores of some classes, each the logits and then the targets of its samples.
void read_scores(const std::string& text, std::vector<ClassScores>& classes) {
  DT_CHECK(text.size() % (kBytes * classes.size()) == 0, text.size(), " bytes for ", classes.size(), " classes");
  const size_t samples = text.size() / kBytes / classes.size();
  const char* from = text.data();
  for (ClassScores& scores : classes) {
    for (size_t i = 0; i < samples; ++i) {
      float logit;
      std::memcpy(&logit, from + i * sizeof logit, sizeof logit);
      const auto target = static_cast<uint8_t>(from[samples * sizeof logit + i]);
      DT_CHECK(target <= 1, "a target of ", int{target});
      scores.emplace_back(logit, target);
    }
    from += samples * kBytes;
  }
}

}  // namespace

std::optional<double> average_precision(std::vector<std::pair<float, uint8_t>> scores) {
  uint64_t positives = 0;
  for (auto& [score, target] : scores) {
    if (std::isnan(score)) score = -std::numeric_limits<float>::infinity();
    positives += target;
  }
  if (positives == 0) return {};
  std::ranges::sort(scores, std::greater<>(), &std::pair<float, uint8_t>::first);
  double sum = 0;
  uint64_t hits = 0;
  for (size_t i = 0; i < scores.size();) {
    const float threshold = scores[i].first;
    uint64_t found = 0;
    for (; i < scores.size() && scores[i].first == threshold; ++i) found += scores[i].second;
    hits += found;
    sum += static_cast<double>(found) * static_cast<double>(hits) / static_cast<double>(i);
  }
  return sum / static_cast<double>(positives);
}

LabelScores::LabelScores(int64_t classes) : classes_(static_cast<size_t>(classes)) {
  DT_CHECK(classes > 0, "label scores of ", classes, " classes");
}

void LabelScores::add(std::span<const float> logits, std::span<const float> targets) {
  DT_CHECK(logits.size() == classes_ && targets.size() == classes_, "label scores: ", logits.size(), " logits and ",
           targets.size(), " targets of ", classes_, " classes");
  logits_.insert(logits_.end(), logits.begin(), logits.end());
  for (const float target : targets) targets_.push_back(target > 0.5f);
}

std::vector<MetricValue> LabelScores::values(Group& group) const {
  const size_t samples = logits_.size() / classes_;
  const auto most = static_cast<size_t>(group.extremes(static_cast<int64_t>(samples), "label scores").second);
  const size_t block = std::clamp(kMostGatheredBytes / (kBytes * std::max<size_t>(most, 1)), size_t{1}, classes_);
  Totals totals;
  for (size_t begin = 0; begin < classes_; begin += block) {
    const size_t end = std::min(begin + block, classes_);
    std::string text;
    text.reserve(samples * (end - begin) * kBytes);
    for (size_t label = begin; label < end; ++label) {
      for (size_t i = 0; i < samples; ++i)
        text.append(reinterpret_cast<const char*>(&logits_[i * classes_ + label]), sizeof(float));
      for (size_t i = 0; i < samples; ++i) text += static_cast<char>(targets_[i * classes_ + label]);
    }
    std::vector<ClassScores> scores(end - begin);
    read_texts(group, text, "label scores", [&](int, const std::string& theirs) { read_scores(theirs, scores); });
    for (ClassScores& one : scores) totals.add(std::move(one));
  }
  return totals.values();
}

}  // namespace dtrain
