// Crops of RLE masks against RoIAlign of the decoded masks.
#include "dtrain/ops/crop_masks.h"

#include "tests/ops/naive_roi_align.h"

namespace dtrain {
namespace {

// Two rows of masks with their run ends; the last mask of the second row has no runs.
struct RunsFixture {
  std::vector<Array> images;  // [1, h, w, 1], row by row
  std::vector<int32_t> ends, begins;
  static constexpr int64_t kCapacity = 200, kPerRow = 3;

  RunsFixture() {
    const Shape sizes[] = {{1, 9, 12, 1}, {1, 14, 7, 1}};
    for (int row = 0; row < 2; ++row) {
      std::vector<int32_t> row_ends;
      for (int i = 0; i < kPerRow; ++i) {
        begins.push_back(static_cast<int32_t>(row_ends.size()));
        images.push_back(draw(sizes[row], row * kPerRow + i));
        if (row == 0 || i + 1 < kPerRow) append_runs(images.back(), row_ends);
      }
      begins.push_back(static_cast<int32_t>(row_ends.size()));
      EXPECT_LE(static_cast<int64_t>(row_ends.size()), kCapacity);
      row_ends.resize(kCapacity, 7);
      ends.insert(ends.end(), row_ends.begin(), row_ends.end());
    }
  }

  RleMasks upload(Context& context) const {
    return {to_device(context, {2, kCapacity}, ends), to_device(context, {2, kPerRow + 1}, begins),
            to_device(context, Array({2, 2}, {9, 12, 14, 7}))};
  }

 private:
  // Blobs, noise, a mask that begins with a one, and an empty one.
  static Array draw(const Shape& shape, int number) {
    Array image(shape);
    const Array noise = random_array(shape, static_cast<uint64_t>(number));
    for (int64_t h = 0; h < shape[1]; ++h)
      for (int64_t w = 0; w < shape[2]; ++w) {
        const bool blob = (h - 4) * (h - 4) + (w - 3) * (w - 3) < 12;
        const bool kinds[] = {blob, noise.at(0, h, w, 0) > 0, !blob};
        image.at(0, h, w, 0) = number != 5 && kinds[number % 3];
      }
    return image;
  }
  static void append_runs(const Array& image, std::vector<int32_t>& to) {
    const int64_t height = image.dim(1), count = image.count();
    double value = 0;
    for (int64_t p = 0; p < count; ++p)
      if (image.at(0, p % height, p / height, 0) != value) {
        to.push_back(static_cast<int32_t>(p));
        value = 1 - value;
      }
    to.push_back(static_cast<int32_t>(count));
  }
};

const std::vector<std::vector<float>> kCrops{{0, 0, 7, 9},       {1.5f, 2.25f, 6.75f, 8}, {-4, -3, 20, 20},
                                             {3, 3, 3.4f, 3.2f}, {5, 6, 11, 13.5f},       {30, 30, 40, 40},
                                             {2, 2, 9, 5}};

TEST(CropMasks, AgreesWithRoiAlignOfTheDecodedImage) {
  const RunsFixture runs;
  std::vector<float> rois;
  std::vector<int32_t> images, which;
  for (int32_t image = 0; image < 6; ++image)
    for (const auto& roi : kCrops) {
      rois.insert(rois.end(), roi.begin(), roi.end());
      images.push_back(image / 3), which.push_back(image % 3);
    }
  images[4] = -1, which[5] = -1;
  const auto count = static_cast<int64_t>(images.size());
  for (const auto& context : devices())
    for (const auto& [ratio, aligned] : {std::pair{1, true}, {2, false}, {0, true}, {0, false}}) {
      const CropOptions options{.height = 5, .width = 4, .sampling_ratio = ratio, .aligned = aligned};
      Array expected({count, 5, 4});
      for (int64_t r = 0; r < count; ++r) {
        const auto i = static_cast<size_t>(r);
        if (images[i] < 0 || which[i] < 0) continue;
        const Array one =
            naive_roi_align(runs.images[static_cast<size_t>(images[i] * 3 + which[i])], 0, kCrops[i % kCrops.size()], 1,
                            {.height = 5, .width = 4, .sampling_ratio = ratio, .aligned = aligned});
        std::copy(one.values.begin(), one.values.end(), expected.values.begin() + r * 20);
      }
      poison(*context);
      const Tensor y = context->empty({count, 5, 4});
      crop_masks(*context, runs.upload(*context), to_device(*context, {count, 4}, rois),
                 to_device(*context, {count}, images), to_device(*context, {count}, which), options, y);
      expect_close(to_host(*context, y), expected, 1e-5, concat("crop_masks, ratio ", ratio));
    }
}

TEST(CropMasks, StaysWithinTablesThatAreWrong) {
  const RunsFixture runs;
  for (const auto& context : devices()) {
    RleMasks wrong = runs.upload(*context);
    wrong.begins = to_device(*context, {2, 4}, std::vector<int32_t>{-5, 1 << 30, 3, 2, 190, 1 << 30, -1, 250});
    wrong.sizes = to_device(*context, Array({2, 2}, {1e9, 1e9, std::nan(""), -3}));
    const std::vector<int32_t> images{0, 0, 0, 1, 1, 1}, which{0, 1, 2, 0, 1, 2};
    const Tensor rois = to_device(*context, Array({6, 4}, std::vector<double>(24, 5))), y = context->empty({6, 28, 28});
    crop_masks(*context, wrong, rois, to_device(*context, {6}, images), to_device(*context, {6}, which), {}, y);
    EXPECT_LE(largest(to_host(*context, y)), 1);
  }
}

TEST(CropMasks, ImagesWithoutRunsWeighNothing) {
  const RunsFixture fixture;
  for (const auto& context : devices()) {
    const std::vector<int32_t> images{0, 1, 1, -1, 1, 1}, which{0, 0, 2, -1, -1, 1};
    const Tensor weights = to_device(*context, Array({6}, {1, 2, 3, 4, 5, 6}));
    ignore_unknown_masks(*context, fixture.upload(*context), to_device(*context, {6}, images),
                         to_device(*context, {6}, which), weights);
    expect_close(to_host(*context, weights), Array({6}, {1, 2, 0, 4, 5, 6}), 0, "ignore_unknown_masks");
    expect_error(
        [&] {
          ignore_unknown_masks(*context, fixture.upload(*context), to_device(*context, {6}, images),
                               to_device(*context, {6}, which), context->zeros({5}));
        },
        Fault::config, "weights [5] of f32");
  }
}

TEST(CropMasks, RefusesWhatDoesNotFit) {
  const RunsFixture fixture;
  for (const auto& context : devices()) {
    const RleMasks runs = fixture.upload(*context);
    const Tensor rois = context->zeros({1, 4}), y = context->zeros({1, 28, 28});
    const auto index = [&](int32_t value) { return to_device(*context, {1}, std::vector<int32_t>{value}); };
    const auto refused = [&](const RleMasks& table, const Tensor& to, const CropOptions& options, const char* part) {
      expect_error([&] { crop_masks(*context, table, rois, index(0), index(0), options, to); }, Fault::config, part);
    };
    refused({runs.ends, runs.begins, rois}, y, {}, "sizes [1, 4]");
    refused({}, y, {}, "crop_masks");
    refused(runs, y, {.height = 14}, "expected [1, 14, 28]");
    refused(runs, y, {.sampling_ratio = -1}, "no negative ratio");
    if (context->is_cpu()) {
      expect_error([&] { crop_masks(*context, runs, rois, index(0), index(3), {}, y); }, Fault::config,
                   "region 0 is of image 3 of 3, row 0 of 2");
      continue;
    }
    crop_masks(*context, runs, rois, index(2), index(0), {}, y);
    EXPECT_TRUE(std::isnan(to_host(*context, y)[0]));
  }
}

}  // namespace
}  // namespace dtrain
