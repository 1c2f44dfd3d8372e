#include "apps/mask_rcnn/image_ranking.h"

#include <algorithm>
#include <tuple>

namespace dtrain::mask_rcnn {
namespace {

void add(const data::coco::Match& match, double least_score, ImageOutcome& outcome) {
  int64_t hits = 0;
  for (size_t i = 0; i < match.scores.size() && match.scores[i] >= least_score; ++i) {
    const data::coco::Match::Bits& bits = match.bits[i];
    if ((bits.ignored & 1) != 0) continue;
    if ((bits.matched & 1) != 0)
      ++hits;
    else
      ++outcome.false_alarms;
  }
  outcome.hits += hits;
  outcome.misses += int64_t{match.truths.front()} - hits;
}

}  // namespace

std::vector<ImageOutcome> ranked_images(std::span<const std::vector<data::coco::Match>> matches, double least_score) {
  std::vector<ImageOutcome> outcomes;
  for (size_t image = 0; image < matches.size(); ++image) {
    ImageOutcome outcome{.image = image};
    for (const data::coco::Match& match : matches[image]) add(match, least_score, outcome);
    if (outcome.hits + outcome.errors() > 0) outcomes.push_back(outcome);
  }
  std::ranges::stable_sort(outcomes, {},
                           [](const ImageOutcome& one) { return std::tuple(one.f1(), -one.errors(), one.hits); });
  return outcomes;
}

Extremes extremes_of(std::span<const ImageOutcome> ranked, size_t most) {
  const auto worst = ranked.first(std::min(most, (ranked.size() + 1) / 2));
  const auto rest = ranked.subspan(worst.size());
  const auto best = rest.last(std::min(most, rest.size()));
  return {{worst.begin(), worst.end()}, {best.rbegin(), best.rend()}};
}

}  // namespace dtrain::mask_rcnn
