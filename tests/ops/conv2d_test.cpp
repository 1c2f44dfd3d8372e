#include "dtrain/ops/conv2d.h"

#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/ops/matrix_reference.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct ConvCase {
  std::string name;
  Shape x, w;
  Conv2dOptions options;
  bool bias = false;
};

OpCase op_case(const ConvCase& test) {
  OpCase result;
  result.name = test.name;
  result.inputs = {random_array(test.x, 11), random_array(test.w, 12)};
  if (test.bias) result.inputs.push_back(random_array({test.w[0]}, 13));
  result.roles = {Role::activation, Role::weight, Role::parameter};
  result.op = [test](Tape& tape, const std::vector<Var>& in) {
    return conv2d(tape, in[0], in[1], test.bias ? &in[2] : nullptr, test.options);
  };
  result.reference = [test](const std::vector<Array>& in) {
    return conv2d_reference(in[0], in[1], test.bias ? &in[2] : nullptr, test.options);
  };
  return result;
}

TEST(Conv2d, KernelsAndStrides) {
  for (const ConvCase& test : std::vector<ConvCase>{
           {"1x1", {2, 5, 4, 17}, {5, 1, 1, 17}, {}},
           {"1x1, 64 channels", {2, 4, 4, 64}, {64, 1, 1, 64}, {}},
           {"1x1, many pixels of few channels", {3, 16, 17, 16}, {24, 1, 1, 16}, {}},
           {"1x1, stride 2", {2, 7, 6, 64}, {32, 1, 1, 64}, {.stride = 2}},
           {"3x3", {1, 6, 5, 3}, {17, 3, 3, 3}, {.padding = 1}},
           {"3x3, 64 channels", {1, 5, 5, 64}, {64, 3, 3, 64}, {.padding = 1}},
           {"3x3, stride 2", {2, 8, 7, 16}, {24, 3, 3, 16}, {.stride = 2, .padding = 1}},
           {"3x3, no padding, one channel", {3, 5, 5, 1}, {1, 3, 3, 1}, {}},
           {"7x7, stride 2: the stem", {1, 14, 11, 3}, {64, 7, 7, 3}, {.stride = 2, .padding = 3}},
           {"2x5", {2, 6, 9, 5}, {3, 2, 5, 5}, {}},
           {"unequal strides", {1, 9, 8, 5}, {8, 3, 3, 5}, {.stride = {2, 3}, .padding = 1}},
           {"kernel as large as the image", {2, 4, 4, 8}, {6, 4, 4, 8}, {}},
           {"one pixel", {1, 1, 1, 3}, {5, 1, 1, 3}, {}},
       })
    check_op(op_case(test));
}

TEST(Conv2d, PaddingOfEachSide) {
  for (const ConvCase& test : std::vector<ConvCase>{
           {"bottom and right", {2, 6, 6, 5}, {8, 3, 3, 5}, {.stride = 2, .padding = {0, 1, 0, 1}}},
           {"top and left", {1, 5, 6, 8}, {8, 3, 3, 8}, {.padding = {2, 0, 1, 0}}},
           {"all different", {1, 5, 4, 3}, {4, 3, 3, 3}, {.padding = {0, 1, 2, 1}}},
           {"wider than the kernel", {1, 3, 3, 2}, {2, 1, 1, 2}, {.padding = {1, 2, 2, 1}}},
           {"a last row that no window reaches", {1, 8, 8, 4}, {4, 3, 3, 4}, {.stride = 2, .padding = {0, 2, 0, 2}}},
       })
    check_op(op_case(test));
}

TEST(Conv2d, GroupsDilationAndBias) {
  for (const ConvCase& test : std::vector<ConvCase>{
           {"2 groups", {2, 5, 5, 6}, {4, 3, 3, 3}, {.padding = 1, .groups = 2}},
           {"4 groups of 16, 1x1", {1, 4, 4, 64}, {64, 1, 1, 16}, {.groups = 4}},
           {"depthwise", {2, 6, 5, 17}, {17, 3, 3, 1}, {.padding = 1, .groups = 17}},
           {"depthwise, 64 channels, stride 2",
            {1, 6, 6, 64},
            {64, 3, 3, 1},
            {.stride = 2, .padding = 1, .groups = 64}},
           {"depthwise, two filters per channel", {1, 4, 5, 5}, {10, 3, 3, 1}, {.padding = 1, .groups = 5}},
           {"dilation 2", {1, 9, 8, 5}, {8, 3, 3, 5}, {.padding = 2, .dilation = 2}},
           {"dilation (1, 3), stride 2", {1, 6, 9, 4}, {8, 3, 3, 4}, {.stride = 2, .padding = 1, .dilation = {1, 3}}},
           {"bias", {2, 5, 6, 8}, {17, 3, 3, 8}, {.padding = 1}, true},
           {"bias, 1x1, 3 filters", {3, 3, 3, 16}, {3, 1, 1, 16}, {}, true},
           {"bias, groups, dilation", {1, 7, 7, 4}, {8, 3, 3, 2}, {.dilation = 2, .groups = 2}, true},
       })
    check_op(op_case(test));
}

// More channels than vectors hold, fewer than one, and some over; images of less than a tile and of several.
TEST(Conv2d, Depthwise) {
  const auto same = [](int64_t size, int kernel, int stride) { return Padding::same(size, size, kernel, stride); };
  for (const ConvCase& test : std::vector<ConvCase>{
           {"3x3", {2, 9, 16, 24}, {24, 3, 3, 1}, {.padding = 1, .groups = 24}},
           {"3x3, 83 channels, bias", {1, 4, 9, 83}, {83, 3, 3, 1}, {.padding = 1, .groups = 83}, true},
           {"3x3, stride 2, SAME of an even image",
            {2, 16, 16, 20},
            {20, 3, 3, 1},
            {.stride = 2, .padding = same(16, 3, 2), .groups = 20}},
           {"3x3, stride 2, SAME of an odd image",
            {1, 17, 17, 32},
            {32, 3, 3, 1},
            {.stride = 2, .padding = same(17, 3, 2), .groups = 32}},
           {"5x5", {1, 11, 12, 17}, {17, 5, 5, 1}, {.padding = 2, .groups = 17}},
           {"5x5, stride 2, SAME", {2, 14, 14, 8}, {8, 5, 5, 1}, {.stride = 2, .padding = same(14, 5, 2), .groups = 8}},
           {"7x7", {1, 9, 19, 12}, {12, 7, 7, 1}, {.padding = 3, .groups = 12}},
           {"7x7, stride 2, SAME", {1, 16, 16, 9}, {9, 7, 7, 1}, {.stride = 2, .padding = same(16, 7, 2), .groups = 9}},
           {"7x7 over an image of 3x3", {2, 3, 3, 16}, {16, 7, 7, 1}, {.padding = 3, .groups = 16}},
           {"unequal kernel, strides and dilation",
            {1, 13, 17, 5},
            {5, 2, 4, 1},
            {.stride = {3, 2}, .padding = {1, 0, 2, 3}, .dilation = {2, 3}, .groups = 5}},
           {"a stride beyond the kernel", {1, 7, 7, 3}, {3, 1, 1, 1}, {.stride = 2, .groups = 3}},
           {"no padding", {3, 6, 14, 10}, {10, 3, 3, 1}, {.groups = 10}},
       })
    check_op(op_case(test));
}

TEST(Conv2d, GroupsOfSeveralChannels) {
  const Padding same = Padding::same(10, 10, 3, 2);
  for (const ConvCase& test : std::vector<ConvCase>{
           {"2 groups of 8 to 16", {2, 6, 7, 16}, {32, 3, 3, 8}, {.padding = 1, .groups = 2}},
           {"32 groups of 4, stride 2, SAME",
            {1, 10, 10, 128},
            {128, 3, 3, 4},
            {.stride = 2, .padding = same, .groups = 32}},
           {"3 groups of 5 to 2, 5x5, bias", {1, 6, 6, 15}, {6, 5, 5, 5}, {.padding = 2, .groups = 3}, true},
           {"4 groups of 2 to 1", {2, 5, 5, 8}, {4, 3, 3, 2}, {.padding = 1, .groups = 4}},
       })
    check_op(op_case(test));
}

TEST(Conv2d, ManyChannelsByWinograd) {
  for (const ConvCase& test : std::vector<ConvCase>{
           {"whole tiles", {6, 8, 8, 64}, {32, 3, 3, 64}, {.padding = 1}},
           {"tiles over the edge, all paddings different, bias",
            {6, 7, 6, 48},
            {48, 3, 3, 48},
            {.padding = {0, 1, 2, 1}},
            true},
       }) {
    OpCase large = op_case(test);
    large.f32_only = true;  // its reference takes seconds
    check_op(large);
  }
}

TEST(Conv2d, WeightUsedTwiceHasTheSumOfBothGradients) {
  const Conv2dOptions o{.padding = 1};
  OpCase test;
  test.name = "the same filters twice";
  test.inputs = {random_array({2, 5, 5, 8}, 11), random_array({8, 3, 3, 8}, 12)};
  test.roles = {Role::activation, Role::weight};
  test.op = [o](Tape& tape, const std::vector<Var>& in) {
    return conv2d(tape, conv2d(tape, in[0], in[1], o), in[1], o);
  };
  test.reference = [o](const std::vector<Array>& in) {
    return conv2d_reference(conv2d_reference(in[0], in[1], nullptr, o), in[1], nullptr, o);
  };
  check_op(test);
}

TEST(Conv2d, TakesNoFreshMemoryAfterTheFirstStep) {
  const auto context = make_cpu_context({.threads = 2});
  const Tensor x = to_device(*context, random_array({2, 9, 9, 16}, 1));
  const Tensor w = to_device(*context, random_array({24, 3, 3, 16}, 2));
  const Tensor y = context->empty({2, 9, 9, 24}), dx = context->empty(x.shape()), dw = context->empty(w.shape());
  const Conv2dOptions o{.padding = 1};
  auto step = [&](bool add) {
    cpu::conv2d(*context, x, w, {}, o, y);
    cpu::conv2d_dgrad(*context, y, w, o, dx, add);
    cpu::conv2d_wgrad(*context, x, y, o, dw, add);
  };
  step(false);
  step(true);
  const MemoryStats before = context->memory_stats();
  step(true);
  const MemoryStats after = context->memory_stats();
  EXPECT_EQ(before.system_calls, after.system_calls);
  EXPECT_EQ(before.in_use, after.in_use);
  EXPECT_EQ(before.peak_in_use, after.peak_in_use);
}

// In bf16 they need no widened copies of the images, on any processor.
TEST(Conv2d, DepthwiseTakesNoMemoryForImages) {
  const Conv2dOptions o{.padding = 1, .groups = 32};
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    const Tensor x = context->zeros({1, 30, 30, 32}, DType::bf16), w = context->zeros({32, 3, 3, 1}, DType::bf16);
    const Tensor dw = context->zeros(w.shape()), y = context->zeros(x.shape(), DType::bf16);
    const size_t before = context->memory_stats().in_use;
    cpu::conv2d(*context, x, w, {}, o, y);
    cpu::conv2d_dgrad(*context, y, w, o, x, false);
    cpu::conv2d_wgrad(*context, x, y, o, dw, false);
    EXPECT_LT(context->memory_stats().peak_in_use - before, static_cast<size_t>(x.bytes())) << name_of(isa);
  }
}

TEST(Conv2d, SamePaddingIsTensorFlows) {
  struct {
    int64_t in;
    int kernel, stride, before, after;
  } const rows[] = {{224, 7, 2, 2, 3}, {112, 3, 2, 0, 1}, {7, 3, 1, 1, 1}, {7, 3, 2, 1, 1},
                    {5, 2, 1, 0, 1},   {8, 1, 2, 0, 0},   {5, 1, 3, 0, 0}, {3, 5, 2, 2, 2}};
  for (const auto& row : rows) {
    const Padding pad = Padding::same(row.in, 10, {row.kernel, 1}, {row.stride, 1});
    EXPECT_EQ(pad.top, row.before) << row.in;
    EXPECT_EQ(pad.bottom, row.after) << row.in;
    EXPECT_EQ(pad.left + pad.right, 0);
    const Shape y =
        conv2d_shape({1, row.in, 10, 1}, {1, row.kernel, 1, 1}, {.stride = {row.stride, 1}, .padding = pad});
    EXPECT_EQ(y, Shape({1, (row.in + row.stride - 1) / row.stride, 10, 1}));
  }
}

TEST(Conv2d, RefusesWhatDoesNotFit) {
  auto refused = [](Shape x, Shape w, Conv2dOptions o, const std::string& part) {
    expect_error([&] { conv2d_shape(x, w, o); }, Fault::config, part);
  };
  refused({2, 5, 3}, {4, 3, 3, 3}, {}, "expected [n, h, w, c]");
  refused({1, 5, 5, 3}, {4, 3, 3}, {}, "expected [k, r, s, c / groups]");
  refused({1, 5, 5, 3}, {4, 3, 3, 4}, {}, "the images [1, 5, 5, 3] have 3");
  refused({1, 5, 5, 6}, {4, 3, 3, 2}, {.groups = 3}, "do not divide into 3 groups");
  refused({1, 2, 5, 3}, {4, 3, 3, 3}, {}, "a kernel of height 3");
  refused({1, 5, 4, 3}, {4, 3, 3, 3}, {.dilation = 2}, "a kernel of width 3 (5 with its dilation)");
  refused({1, 5, 5, 3}, {4, 3, 3, 3}, {.stride = 0}, "at least 1");
  refused({1, 5, 5, 3}, {4, 3, 3, 3}, {.padding = -1}, "must not be negative");
  refused({0, 5, 5, 3}, {4, 3, 3, 3}, {}, "without elements");
}

}  // namespace
}  // namespace dtrain
