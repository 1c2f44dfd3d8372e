#include "libdtrain/ops/positive_samples.h"

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// Regions of `images` images whose rows encode their origin.
RoiSamples regions_of(Context& context, int64_t images, const std::vector<int32_t>& classes) {
  const auto r = static_cast<int64_t>(classes.size());
  std::vector<float> rois(4 * classes.size());
  std::vector<int32_t> image(classes.size()), truth(classes.size());
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t side = 0; side < 4; ++side) rois[4 * i + side] = static_cast<float>(10 * i + side);
    image[i] = classes[i] < 0 ? -1 : static_cast<int32_t>(i / (r / images));
    truth[i] = classes[i] > 0 ? static_cast<int32_t>(i % 3) : -1;
  }
  return {to_device(context, {r, 4}, rois), to_device(context, {r}, image), to_device(context, {r}, classes),
          to_device(context, {r}, truth),   context.zeros({r, 4}),          context.zeros({2})};
}

PositiveSamples room_for(Context& context, int64_t m) {
  poison(context);
  return {context.empty({m, 4}), context.empty({m}, DType::i32), context.empty({m}, DType::i32),
          context.empty({m}, DType::i32), context.empty({m})};
}

TEST(PositiveSamples, AreGatheredInOrder) {
  for (const auto& context : devices()) {
    const RoiSamples regions = regions_of(*context, 2, {5, 0, -1, 7, 2, 2, 0, -1});
    const PositiveSamples found = room_for(*context, 6);
    gather_positives(*context, regions, 2, MeanOver::batch, found);
    EXPECT_EQ(values_of<float>(*context, found.rois),
              (std::vector<float>{0, 1, 2, 3, 30, 31, 32, 33, 40, 41, 42, 43, 50, 51, 52, 53, 0, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(values_of<int32_t>(*context, found.images), (std::vector<int32_t>{0, 0, 1, 1, -1, -1}));
    EXPECT_EQ(values_of<int32_t>(*context, found.classes), (std::vector<int32_t>{5, 7, 2, 2, -1, -1}));
    EXPECT_EQ(values_of<int32_t>(*context, found.truth), (std::vector<int32_t>{0, 0, 1, 2, -1, -1}));
    EXPECT_EQ(values_of<float>(*context, found.weights), (std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f, 0, 0}));
  }
}

TEST(PositiveSamples, ThoseBeyondTheRoomAreLeftOut) {
  for (const auto& context : devices()) {
    const PositiveSamples found = room_for(*context, 2);
    gather_positives(*context, regions_of(*context, 2, {1, 2, 3, 4}), 2, MeanOver::batch, found);
    EXPECT_EQ(values_of<int32_t>(*context, found.classes), (std::vector<int32_t>{1, 2}));
  }
}

TEST(PositiveSamples, EachImageWeighsTheSame) {
  for (const auto& context : devices()) {
    const RoiSamples regions = regions_of(*context, 3, {5, 0, 0, -1, 7, 2, -1, -1, 0, 0, 0, 0});
    const PositiveSamples found = room_for(*context, 3);
    gather_positives(*context, regions, 3, MeanOver::images, found);
    EXPECT_EQ(values_of<float>(*context, found.weights), (std::vector<float>{1.0f / 3, 1.0f / 6, 1.0f / 6}));
    const Tensor weights = context->empty({12});
    region_weights(*context, regions, 3, MeanOver::images, weights);
    EXPECT_EQ(values_of<float>(*context, weights),
              (std::vector<float>{1.0f / 9, 0, 0, 0, 1.0f / 6, 1.0f / 6, 0, 0, 0, 0, 0, 0}));
    region_weights(*context, regions, 3, MeanOver::batch, weights);
    EXPECT_EQ(values_of<float>(*context, weights),
              (std::vector<float>{1.0f / 9, 0, 0, 0, 1.0f / 9, 1.0f / 9, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(PositiveSamples, NoneGiveNothing) {
  for (const auto& context : devices()) {
    const RoiSamples regions = regions_of(*context, 1, {0, -1, -1});
    const PositiveSamples found = room_for(*context, 2);
    gather_positives(*context, regions, 1, MeanOver::images, found);
    EXPECT_EQ(values_of<int32_t>(*context, found.images), (std::vector<int32_t>{-1, -1}));
    EXPECT_EQ(values_of<float>(*context, found.weights), (std::vector<float>{0, 0}));
  }
}

TEST(PositiveSamples, ManyAreFoundByAllThreads) {
  for (const auto& context : devices()) {
    RandomStream random(1, 2);
    std::vector<int32_t> classes(4 * 515), expected;
    for (int32_t& k : classes) {
      k = static_cast<int32_t>(random.below(5)) - 1;
      if (k > 0) expected.push_back(k);
    }
    const PositiveSamples found = room_for(*context, static_cast<int64_t>(expected.size()));
    gather_positives(*context, regions_of(*context, 4, classes), 4, MeanOver::batch, found);
    EXPECT_EQ(values_of<int32_t>(*context, found.classes), expected);
  }
}

TEST(PositiveSamples, PlacesKnowTheirImages) {
  for (const auto& context : devices()) {
    const Tensor images = context->empty({9}, DType::i32);
    images_of_places(*context, to_device(*context, {3}, std::vector<int32_t>{2, 0, 3}), images);
    EXPECT_EQ(values_of<int32_t>(*context, images), (std::vector<int32_t>{0, 0, -1, -1, -1, -1, 2, 2, 2}));
    expect_error([&] { images_of_places(*context, context->zeros({2}, DType::i32), images); }, Fault::config,
                 "expected [n] and [n * p]");
  }
}

}  // namespace
}  // namespace dtrain
