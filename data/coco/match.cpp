#include "data/coco/match.h"

#include <algorithm>

namespace dtrain::data::coco {
namespace {

// Ground truth whose IoU reaches the lowest threshold, or is NaN, which pycocotools counts as a match.
struct Candidate {
  uint32_t truth;
  double iou;
};

// Indices of items by category, in the given order within a category.
template <class Item>
std::vector<uint32_t> by_category(std::span<const Item> items) {
  std::vector<uint32_t> order(items.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return items[a].category < items[b].category; });
  return order;
}

// Removes and returns the first item of the list if it is of this category.
template <class Item>
std::span<uint32_t> take(std::span<uint32_t>& list, std::span<const Item> items, uint32_t category) {
  size_t count = 0;
  while (count < list.size() && items[list[count]].category == category) ++count;
  const std::span<uint32_t> taken = list.first(count);
  list = list.subspan(count);
  return taken;
}

class Matcher {
 public:
  Matcher(std::span<const Truth> truths, std::span<const Found> found, const MatchOptions& options)
      : truths_(truths), found_(found), options_(options) {
    for (const double threshold : options.iou_thresholds) thresholds_.push_back(std::min(threshold, 1 - 1e-10));
    lowest_ = thresholds_.empty() ? 1 : *std::min_element(thresholds_.begin(), thresholds_.end());
  }

  Match match(uint32_t category, std::span<const uint32_t> truths, std::span<uint32_t> found);

 private:
  void find_candidates(std::span<const uint32_t> truths, std::span<const uint32_t> found);
  void match_area(const AreaRange& area, std::span<const uint32_t> truths, std::span<const uint32_t> found,
                  std::span<Match::Bits> bits);
  // Best remaining candidate for a threshold among ignored or other ground truths; the number of ground truths if there
  // is none.
  uint32_t choose(std::span<const Candidate> candidates, size_t threshold, bool ignored) const;

  const std::span<const Truth> truths_;
  const std::span<const Found> found_;
  const MatchOptions& options_;
  std::vector<double> thresholds_;
  double lowest_;
  std::vector<Candidate> candidates_;
  std::vector<size_t> begins_;         // of each detection's candidates, and the end
  std::vector<char> crowd_, ignored_;  // per ground truth
  std::vector<uint64_t> taken_;        // per ground truth: thresholds at which it is matched
};

void Matcher::find_candidates(std::span<const uint32_t> truths, std::span<const uint32_t> found) {
  candidates_.clear();
  begins_.assign(1, 0);
  for (const uint32_t d : found) {
    for (uint32_t i = 0; i < truths.size(); ++i) {
      const Truth& truth = truths_[truths[i]];
      const double overlap =
          options_.shapes ? iou(found_[d].shape, truth.shape, truth.crowd) : iou(found_[d].box, truth.box, truth.crowd);
      if (!(overlap < lowest_)) candidates_.push_back({i, overlap});
    }
    begins_.push_back(candidates_.size());
  }
}

uint32_t Matcher::choose(std::span<const Candidate> candidates, size_t threshold, bool ignored) const {
  double best = thresholds_[threshold];
  uint32_t chosen = static_cast<uint32_t>(ignored_.size());
  for (const Candidate& candidate : candidates) {
    const uint32_t truth = candidate.truth;
    if (bool(ignored_[truth]) != ignored || candidate.iou < best) continue;
    if ((taken_[truth] >> threshold & 1) && !crowd_[truth]) continue;
    best = candidate.iou;
    chosen = truth;
  }
  return chosen;
}

void Matcher::match_area(const AreaRange& area, std::span<const uint32_t> truths, std::span<const uint32_t> found,
                         std::span<Match::Bits> bits) {
  const auto is_outside = [&](double pixels) { return pixels < area.least || pixels > area.most; };
  taken_.assign(truths.size(), 0);
  crowd_.clear();
  ignored_.clear();
  for (const uint32_t i : truths) {
    crowd_.push_back(truths_[i].crowd);
    ignored_.push_back(truths_[i].crowd || is_outside(truths_[i].area));
  }
  for (size_t d = 0; d < found.size(); ++d) {
    const std::span<const Candidate> candidates(candidates_.data() + begins_[d], begins_[d + 1] - begins_[d]);
    for (size_t t = 0; t < thresholds_.size() && !candidates.empty(); ++t) {
      const uint64_t bit = uint64_t{1} << t;
      uint32_t chosen = choose(candidates, t, false);
      if (chosen == truths.size()) chosen = choose(candidates, t, true);
      if (chosen == truths.size()) continue;
      taken_[chosen] |= bit;
      if (!truths_[truths[chosen]].never_matches) bits[d].matched |= bit;
      if (ignored_[chosen]) bits[d].ignored |= bit;
    }
    if (is_outside(found_[found[d]].area)) bits[d].ignored |= ~bits[d].matched;
  }
}

Match Matcher::match(uint32_t category, std::span<const uint32_t> truths, std::span<uint32_t> found) {
  std::stable_sort(found.begin(), found.end(),
                   [&](uint32_t a, uint32_t b) { return found_[a].score > found_[b].score; });
  found = found.first(std::min(found.size(), options_.max_detections));
  find_candidates(truths, found);
  Match match;
  match.category = category;
  for (const uint32_t d : found) match.scores.push_back(found_[d].score);
  match.bits.resize(options_.areas.size() * found.size());
  for (size_t a = 0; a < options_.areas.size(); ++a) {
    match_area(options_.areas[a], truths, found, std::span(match.bits).subspan(a * found.size(), found.size()));
    match.truths.push_back(static_cast<uint32_t>(std::count(ignored_.begin(), ignored_.end(), 0)));
  }
  return match;
}

}  // namespace

std::vector<Match> match(std::span<const Truth> truths, std::span<const Found> found, const MatchOptions& options) {
  std::vector<uint32_t> truth_order = by_category(truths), found_order = by_category(found);
  std::span<uint32_t> truths_left(truth_order), found_left(found_order);
  Matcher matcher(truths, found, options);
  std::vector<Match> matches;
  while (!truths_left.empty() || !found_left.empty()) {
    uint32_t category = UINT32_MAX;
    if (!truths_left.empty()) category = truths[truths_left[0]].category;
    if (!found_left.empty()) category = std::min(category, found[found_left[0]].category);
    const std::span<uint32_t> true_ones = take(truths_left, truths, category);
    matches.push_back(matcher.match(category, true_ones, take(found_left, found, category)));
  }
  return matches;
}

}  // namespace dtrain::data::coco
