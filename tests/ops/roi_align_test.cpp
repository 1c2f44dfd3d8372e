// RoIAlign against loops over samples.
#include "dtrain/ops/roi_align.h"

#include <cmath>
#include <limits>

#include "tests/ops/naive_roi_align.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

struct RoiCase {
  const char* name;
  std::vector<Shape> maps;
  std::vector<std::vector<float>> rois;
  std::vector<int32_t> images, levels;  // no levels: single map
  RoiAlignOptions options;
};

std::vector<float> flat_rois(const std::vector<std::vector<float>>& rois) {
  std::vector<float> values;
  for (const auto& roi : rois) values.insert(values.end(), roi.begin(), roi.end());
  return values;
}

Array naive_regions(const RoiCase& test, const Arrays& maps) {
  const RoiAlignOptions& o = test.options;
  Array all({static_cast<int64_t>(test.rois.size()), o.height, o.width, maps[0].dim(3)});
  const int64_t each = o.height * o.width * maps[0].dim(3);
  for (size_t r = 0; r < test.rois.size(); ++r) {
    if (test.images[r] < 0) continue;
    const auto level = static_cast<size_t>(test.levels.empty() ? 0 : test.levels[r]);
    const Array one = naive_roi_align(maps[level], test.images[r], test.rois[r], o.scales[level], o);
    std::copy(one.values.begin(), one.values.end(), all.values.begin() + static_cast<int64_t>(r) * each);
  }
  return all;
}

Var align_regions(Tape& t, const Vars& maps, const RoiCase& test) {
  Context& context = t.context();
  const auto count = static_cast<int64_t>(test.rois.size());
  const Tensor levels = test.levels.empty() ? Tensor() : to_device(context, {count}, test.levels);
  return roi_align(t, maps, to_device(context, {count, 4}, flat_rois(test.rois)),
                   to_device(context, {count}, test.images), levels, test.options);
}

OpCase roi_op_case(const RoiCase& test) {
  Arrays maps;
  for (size_t i = 0; i < test.maps.size(); ++i) maps.push_back(random_array(test.maps[i], i + 1));
  return {.name = concat("roi_align ", test.name),
          .inputs = maps,
          .op = [test](Tape& t, const Vars& v) { return align_regions(t, v, test); },
          .reference = [test](const Arrays& a) { return naive_regions(test, a); }};
}

const std::vector<std::vector<float>> kRois{
    {3, 5, 60, 41},     {10.3f, 8.8f, 14.1f, 11.5f},  // smaller than a pixel of the map
    {-20, -15, 30, 22}, {50, 40, 120, 90},            // partly outside of the map
    {0, 0, 71, 55},     {200, 200, 260, 300},         // entirely outside of the map
    {33, 20, 30, 18},                                 // inverted
    {12, 12, 12, 12},                                 // zero area
};
const std::vector<int32_t> kRegionImages{0, 1, 1, 0, -1, 0, 1, 0};

TEST(RoiAlign, OneMap) {
  for (const bool aligned : {true, false})
    for (const int ratio : {2, 0, 3}) {
      const RoiAlignOptions options{
          .height = 3, .width = 4, .sampling_ratio = ratio, .aligned = aligned, .scales = {0.125f}};
      check_op(roi_op_case({"small", {{2, 7, 9, 3}}, kRois, kRegionImages, {}, options}));
    }
}

// Several tiles, 16-byte accesses, more channels than a block takes, several threads.
TEST(RoiAlign, ManyRegionsAndChannels) {
  std::vector<std::vector<float>> rois;
  std::vector<int32_t> images;
  const Array corners = random_array({300, 4}, 5, 0, 60);
  for (int64_t r = 0; r < 300; ++r) {
    const auto at = [&](int64_t i) { return static_cast<float>(corners[4 * r + i]); };
    rois.push_back({at(0), at(1), at(0) + at(2) / 2, at(1) + at(3) / 2});
    images.push_back(static_cast<int32_t>(r % 4) - 1);
  }
  check_op(roi_op_case({"many", {{3, 18, 21, 24}}, rois, images, {}, {.height = 2, .width = 2, .scales = {0.25f}}}));
  rois.resize(8), images.resize(8);
  check_op(roi_op_case({"wide", {{3, 9, 10, 80}}, rois, images, {}, {.scales = {0.125f}}}));
  check_op(roi_op_case({"large cells",
                        {{3, 18, 21, 8}},
                        rois,
                        images,
                        {},
                        {.height = 1, .width = 2, .sampling_ratio = 0, .scales = {1}}}));
}

TEST(RoiAlign, SeveralMaps) {
  const RoiAlignOptions options{.height = 4, .width = 2, .scales = {0.25f, 0.125f, 0.0625f}};
  check_op(roi_op_case({"pyramid",
                        {{2, 14, 18, 16}, {2, 7, 9, 16}, {2, 4, 5, 16}},
                        kRois,
                        {0, 1, 1, 0, -1, 0, 1, 0},
                        {1, 0, 2, 2, 1, 0, 2, 1},
                        options}));
}

TEST(RoiAlign, LeavesOutMapsWhoseGradientIsNotWanted) {
  const RoiCase test{
      "", {{2, 9, 9, 8}, {2, 5, 5, 8}}, kRois, kRegionImages, {0, 1, 0, 1, 0, 1, 0, 1}, {.scales = {1, 0.5f}}};
  for (const auto& context : devices()) {
    const auto gradient = [&](bool both) {
      Tape tape(*context);
      const Tensor fine = to_device(*context, random_array(test.maps[0], 1));
      const Var map = both ? tape.variable(fine) : tape.constant(fine);
      const Var coarse = tape.variable(to_device(*context, random_array(test.maps[1], 2)));
      const Var y = align_regions(tape, {map, coarse}, test);
      tape.backward(tape.record("sum", context->zeros({1}), {&y}, [y](Tape& t, const Tensor&) {
        t.pass_grad(y, to_device(t.context(), random_array(y.shape(), 3)));
      }));
      return to_host(*context, tape.grad(coarse)).values;
    };
    EXPECT_EQ(gradient(true), gradient(false));
  }
}

// Non-finite proposals of a diverged network must only affect their own step.
TEST(RoiAlign, TakesRegionsThatAreNotFinite) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const RoiCase test{"",
                     {{1, 9, 9, 8}},
                     {{nan, nan, nan, nan}, {-inf, -inf, inf, inf}, {0, 0, 3e38f, 3e38f}, {1, nan, 5, 5}},
                     {0, 0, 0, 0},
                     {},
                     {.sampling_ratio = 0, .scales = {1}}};
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var map = tape.variable(to_device(*context, random_array(test.maps[0], 1)));
    const Var y = align_regions(tape, {map}, test);
    const Array values = to_host(*context, y.value);
    for (int64_t i = 0; i < 7 * 7 * 8; ++i) EXPECT_EQ(values[i], 0);
    tape.backward(tape.record("sum", context->zeros({1}), {&y},
                              [y](Tape& t, const Tensor&) { t.pass_grad(y, t.context().zeros(y.shape())); }));
    EXPECT_EQ(largest(to_host(*context, tape.grad(map))), 0);
  }
}

TEST(RoiAlign, RefusesWhatDoesNotFit) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var map = tape.variable(to_device(*context, random_array({2, 5, 5, 4}, 1)));
    const auto run = [&](std::vector<int32_t> images, std::vector<int32_t> levels, const RoiAlignOptions& options) {
      return align_regions(tape, {map},
                           {"", {}, {{0, 0, 3, 3}, {0, 0, 2, 2}}, std::move(images), std::move(levels), options});
    };
    const auto refused = [&](const RoiAlignOptions& options, const char* part) {
      expect_error([&] { run({0, 0}, {}, options); }, Fault::config, part);
    };
    refused({}, "1 maps and 0 scales");
    refused({.height = 0, .scales = {1}}, "0 x 7 cells");
    refused({.sampling_ratio = -1, .scales = {1}}, "no negative ratio");
    expect_error(
        [&] {
          align_regions(tape, {map, map}, {"", {}, {{0, 0, 3, 3}}, {0}, {}, {.scales = {1, 1}}});
        },
        Fault::config, "2 maps");
    const RoiAlignOptions plain{.height = 2, .width = 2, .scales = {1}};
    if (context->is_cpu()) {
      expect_error([&] { run({0, 2}, {}, plain); }, Fault::config, "region 1 is on image 2 of 2");
      expect_error([&] { run({0, 0}, {0, -1}, plain); }, Fault::config, "map -1 of 1");
      continue;
    }
    EXPECT_TRUE(std::isnan(to_host(*context, run({0, 2}, {}, plain).value)[2 * 2 * 4]));
    EXPECT_TRUE(std::isnan(to_host(*context, run({0, 0}, {0, 1}, plain).value)[2 * 2 * 4]));
  }
}

TEST(RoiLevels, FollowTheSizeOfTheRegion) {
  const std::vector<std::vector<float>> rois{
      {0, 0, 224, 224}, {0, 0, 223, 223}, {0, 0, 448, 448}, {0, 0, 1e6f, 1e6f}, {0, 0, 112, 112},
      {5, 5, 5, 9},     {9, 9, 3, 12},    {0, 0, 56, 448},  {0, 0, 1, 1},       {0, 0, std::nanf(""), 5}};
  for (const auto& context : devices()) {
    const Tensor values = to_device(*context, {10, 4}, flat_rois(rois));
    EXPECT_EQ(values_of<int32_t>(*context, roi_levels(*context, values, {})),
              (std::vector<int32_t>{2, 1, 3, 3, 1, 0, 0, 1, 0, 0}));
    EXPECT_EQ(values_of<int32_t>(*context, roi_levels(*context, values, {.lowest = 3, .highest = 7, .plus_one = true})),
              (std::vector<int32_t>{1, 1, 2, 4, 0, 0, 0, 0, 0, 0}));
  }
}

}  // namespace
}  // namespace dtrain
