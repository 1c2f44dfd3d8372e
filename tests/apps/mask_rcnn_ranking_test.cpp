// Ranking of images, best proposals, percentiles and file names of galleries.
#include "apps/mask_rcnn/annotated_images.h"
#include "apps/mask_rcnn/image_ranking.h"
#include "apps/mask_rcnn/latency.h"
#include "apps/mask_rcnn/proposals.h"
#include "tests/testing.h"

namespace dtrain::mask_rcnn {
namespace {

data::coco::Match match_of(const std::vector<double>& scores, uint64_t matched, uint64_t ignored, uint32_t truths) {
  data::coco::Match match{.scores = scores, .truths = {truths}};
  for (size_t i = 0; i < scores.size(); ++i) match.bits.push_back({matched >> i & 1, ignored >> i & 1});
  return match;
}

TEST(ImageRanking, FiltersByScoreAndOrdersByF1) {
  const std::vector<std::vector<data::coco::Match>> matches = {
      {match_of({0.9, 0.6}, 0b01, 0, 1)},                         // a true and a false positive: 2/3
      {match_of({0.4}, 0b1, 0, 1)},                               // a false negative: the score is too low
      {match_of({0.9}, 0, 0b1, 0)},                               // only ignored objects
      {match_of({0.9, 0.5}, 0b11, 0, 2), match_of({}, 0, 0, 2)},  // two true positives and two false negatives: 2/3
      {match_of({0.9}, 0b1, 0, 1)},                               // right
      {match_of({0.9, 0.8}, 0b11, 0, 2)},                         // right, twice
      {}};
  const std::vector<ImageOutcome> ranked = ranked_images(matches, 0.5);
  std::vector<size_t> order;
  for (const ImageOutcome& one : ranked) order.push_back(one.image);
  EXPECT_EQ(order, (std::vector<size_t>{1, 3, 0, 4, 5}));
  EXPECT_EQ(ranked[1].hits, 2);
  EXPECT_EQ(ranked[1].misses, 2);
  EXPECT_EQ(ranked[2].false_alarms, 1);
  EXPECT_DOUBLE_EQ(ranked[2].f1(), 2.0 / 3);
  const Extremes two = extremes_of(ranked, 2), all = extremes_of(ranked, 9);
  EXPECT_EQ(two.worst[0].image, 1u);
  EXPECT_EQ(two.best[0].image, 5u);
  EXPECT_EQ(two.best.size(), 2u);
  EXPECT_EQ(all.worst.size(), 3u);
  EXPECT_EQ(all.best.size(), 2u);
  EXPECT_TRUE(extremes_of({}, 3).worst.empty());
}

TEST(CoveringProposals, AreTheClosestOnesOfEachObject) {
  const std::vector<Proposal> proposals = {
      {{0, 0, 10, 10}, 0.9}, {{0, 0, 10, 8}, 0.8}, {{50, 50, 10, 10}, 0.7}, {{0, 2, 10, 8}, 0.6}};
  std::vector<data::coco::Annotation> objects(3);
  objects[0].box = {0, 0, 10, 8};
  objects[1] = {.is_crowd = true, .box = {0, 0, 10, 10}};
  objects[2].box = {50, 50, 10, 20};
  const std::vector<CoveringProposal> found = covering_proposals(proposals, objects, 2);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].proposal, 1u);
  EXPECT_DOUBLE_EQ(found[0].iou, 1);
  EXPECT_EQ(found[1].proposal, 0u);
  EXPECT_DOUBLE_EQ(found[1].iou, 0.8);
  EXPECT_EQ(found[2].object, 2u);
  EXPECT_DOUBLE_EQ(found[2].iou, 0.5);
}

TEST(Latency, HasPercentilesByTheNearestRank) {
  std::vector<double> values;
  for (int i = 200; i > 0; --i) values.push_back(i);
  const Latency many = latency_of(values), one = latency_of(std::vector<double>{3});
  EXPECT_EQ(many.median, 100);
  EXPECT_EQ(many.p90, 180);
  EXPECT_EQ(many.p99, 198);
  EXPECT_EQ(many.mean, 100.5);
  EXPECT_EQ(one.p99, 3);
  EXPECT_EQ(one.median, 3);
  expect_error([] { latency_of({}); }, Fault::config, "no times");
}

TEST(PictureNames, AreDifferent) {
  PictureNames names;
  EXPECT_EQ(names.take({.id = 1, .file_name = "a/x.jpg"}), "x.png");
  EXPECT_EQ(names.take({.id = 2, .file_name = "b/x.jpg"}), "x-2.png");
  EXPECT_EQ(names.take({.id = 3, .file_name = "x-2.jpg"}), "x-2-3.png");
  EXPECT_EQ(names.take({.id = 4, .file_name = "x.tar.gz"}), "x.tar.png");
}

}  // namespace
}  // namespace dtrain::mask_rcnn
