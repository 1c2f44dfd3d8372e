// cuDNN's engines for an H200, queried by its description without a GPU.
#include "libdtrain/cuda/cudnn_graph.h"

#include <numeric>

#include "dtrain/ops/conv2d.h"
#include "libdtrain/cuda/cudnn_library.h"
#include "tests/cuda/h200.h"
#include "tests/testing.h"

namespace dtrain::cuda {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

ConvProblem make_problem(ConvKind kind, DType dtype, const Shape& x, const Shape& w, const Conv2dOptions& options) {
  const Shape y = conv2d_shape(x, w, options);
  ConvProblem o{};
  o.kind = kind;
  o.dtype = o.output_dtype = static_cast<int64_t>(dtype);
  o.n = x[0], o.h = x[1], o.w = x[2], o.c = x[3];
  o.k = w[0], o.r = w[1], o.s = w[2];
  o.p = y[1], o.q = y[2];
  o.stride_h = options.stride.h, o.stride_w = options.stride.w;
  o.dilation_h = options.dilation.h, o.dilation_w = options.dilation.w;
  o.pad_top = options.padding.top, o.pad_bottom = options.padding.bottom;
  o.pad_left = options.padding.left, o.pad_right = options.padding.right;
  o.groups = options.groups, o.alignment = 16;
  return o;
}

class CudnnGraph : public testing::Test {
 protected:
  void SetUp() override {
    if (cudnn().version() < 90800)
      GTEST_SKIP() << "SKIPPED: cuDNN " << cudnn().version() << ", which takes no description of a device (9.8 does)";
    target_ = describe_device(kH200);
  }

  // Allowed configurations of the default and the fallback heuristic.
  std::vector<Descriptor> configs(const ConvProblem& problem) {
    const Descriptor graph = conv_graph(problem, target_);
    std::vector<Descriptor> found;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      for (const Descriptor& config : engine_configs(graph, mode, target_))
        if (allowed(problem, config)) found.push_back(config);
    return found;
  }
  bool runs(const ConvProblem& problem) {
    const auto found = configs(problem);
    return std::any_of(found.begin(), found.end(),
                       [&](const Descriptor& config) { return build_plan(config, target_).has_value(); });
  }

  Target target_;
};

TEST_F(CudnnGraph, EveryConvolutionHasAPlanInEveryType) {
  struct {
    const char* name;
    Shape x, w;
    Conv2dOptions options;
  } const cases[] = {
      {"1x1", {256, 56, 56, 256}, {64, 1, 1, 256}, {}},
      {"1x1, stride 2", {256, 56, 56, 256}, {512, 1, 1, 256}, {.stride = 2}},
      {"3x3", {256, 56, 56, 64}, {64, 3, 3, 64}, {.padding = 1}},
      {"3x3, stride 2", {256, 56, 56, 128}, {128, 3, 3, 128}, {.stride = 2, .padding = 1}},
      {"the stem, 4 channels", {256, 224, 224, 4}, {64, 7, 7, 4}, {.stride = 2, .padding = 3}},
      {"the stem, 8 channels", {256, 224, 224, 8}, {64, 7, 7, 8}, {.stride = 2, .padding = 3}},
      {"odd channels", {2, 6, 5, 35}, {17, 3, 3, 35}, {.padding = 1}},
      {"one channel", {3, 5, 5, 1}, {1, 3, 3, 1}, {}},
      {"2x5", {2, 6, 9, 5}, {3, 2, 5, 5}, {}},
      {"one pixel", {1, 1, 1, 3}, {5, 1, 1, 3}, {}},
      {"padding of each side", {1, 5, 4, 3}, {4, 3, 3, 3}, {.padding = {0, 1, 2, 1}}},
      {"padding wider than the kernel", {1, 3, 3, 2}, {2, 1, 1, 2}, {.padding = {1, 2, 2, 1}}},
      {"a last row that no window reaches", {1, 8, 8, 4}, {4, 3, 3, 4}, {.stride = 2, .padding = {0, 2, 0, 2}}},
      {"unequal strides", {1, 9, 8, 5}, {8, 3, 3, 5}, {.stride = {2, 3}, .padding = 1}},
      {"2 groups", {2, 5, 5, 6}, {4, 3, 3, 3}, {.padding = 1, .groups = 2}},
      {"depthwise", {2, 6, 5, 17}, {17, 3, 3, 1}, {.padding = 1, .groups = 17}},
      {"depthwise, two filters per channel", {1, 4, 5, 5}, {10, 3, 3, 1}, {.padding = 1, .groups = 5}},
      {"dilation (1, 3), stride 2", {1, 6, 9, 4}, {8, 3, 3, 4}, {.stride = 2, .padding = 1, .dilation = {1, 3}}},
  };
  for (const auto& test : cases)
    for (const DType dtype : kTypes)
      for (const ConvKind kind : {ConvKind::forward, ConvKind::dgrad, ConvKind::wgrad}) {
        ConvProblem problem = make_problem(kind, dtype, test.x, test.w, test.options);
        problem.deterministic = 1;
        EXPECT_TRUE(runs(problem)) << test.name << ": " << name_of(problem);
      }
}

TEST_F(CudnnGraph, AddressesMayBeUnaligned) {
  for (const DType dtype : kTypes)
    for (const ConvKind kind : {ConvKind::forward, ConvKind::dgrad, ConvKind::wgrad}) {
      ConvProblem problem = make_problem(kind, dtype, {2, 6, 5, 35}, {17, 3, 3, 35}, {.padding = 1});
      problem.alignment = static_cast<int64_t>(size_of(dtype));
      EXPECT_TRUE(runs(problem)) << name_of(problem);
    }
}

TEST_F(CudnnGraph, ExactArithmeticIsKeptWhereItIsAskedFor) {
  ConvProblem problem =
      make_problem(ConvKind::forward, DType::f32, {32, 28, 28, 128}, {128, 3, 3, 128}, {.padding = 1});
  const size_t exact = configs(problem).size();
  problem.tf32 = 1;
  EXPECT_GT(configs(problem).size(), exact);
  EXPECT_GT(exact, 0u);
  // Some of cuDNN's f32 weight gradients are non-deterministic.
  problem = make_problem(ConvKind::wgrad, DType::f32, {32, 28, 28, 128}, {128, 3, 3, 128}, {.padding = 1});
  const size_t any = configs(problem).size();
  problem.deterministic = 1;
  EXPECT_LT(configs(problem).size(), any);
}

// Residual gradient of a ResNet-50 block, accumulated in place by the convolution.
TEST_F(CudnnGraph, ADataGradientIsAddedInPlace) {
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const auto& [x, w] : std::vector<std::pair<Shape, Shape>>{{{256, 56, 56, 256}, {64, 1, 1, 256}},
                                                                   {{256, 28, 28, 512}, {128, 1, 1, 512}},
                                                                   {{256, 14, 14, 1024}, {256, 1, 1, 1024}},
                                                                   {{256, 7, 7, 2048}, {512, 1, 1, 2048}}}) {
      const ConvProblem plain = make_problem(ConvKind::dgrad, dtype, x, w, {});
      const ConvProblem adds = make_problem(ConvKind::dgrad_add, dtype, x, w, {});
      const auto found = configs(adds);
      EXPECT_EQ(found.size(), configs(plain).size());
      EXPECT_TRUE(runs(adds)) << name_of(adds);
      EXPECT_FALSE(compiled_at_run_time(found.front())) << name_of(adds);
    }
}

TEST_F(CudnnGraph, StatisticsComeWithTheConvolutionInF16) {
  for (const auto& [x, w, options] : std::vector<std::tuple<Shape, Shape, Conv2dOptions>>{
           {{256, 56, 56, 64}, {64, 3, 3, 64}, {.padding = 1}},
           {{256, 56, 56, 128}, {128, 3, 3, 128}, {.stride = 2, .padding = 1}},
           {{256, 14, 14, 1024}, {256, 1, 1, 1024}, {}}})
    EXPECT_TRUE(runs(make_problem(ConvKind::forward_statistics, DType::f16, x, w, options)));
}

// Convolutions inside ResNet-50's blocks. Their fusions are precompiled for one type only.
TEST_F(CudnnGraph, ABatchNormIsLeftToTheConvolutionAfterItInF16) {
  for (const auto& [x, w, options] : std::vector<std::tuple<Shape, Shape, Conv2dOptions>>{
           {{256, 56, 56, 64}, {64, 3, 3, 64}, {.padding = 1}},
           {{256, 56, 56, 64}, {256, 1, 1, 64}, {}},
           {{256, 56, 56, 128}, {128, 3, 3, 128}, {.stride = 2, .padding = 1}},
           {{256, 28, 28, 128}, {512, 1, 1, 128}, {}},
           {{256, 14, 14, 256}, {256, 3, 3, 256}, {.padding = 1}},
           {{256, 14, 14, 512}, {512, 3, 3, 512}, {.stride = 2, .padding = 1}},
           {{256, 7, 7, 512}, {2048, 1, 1, 512}, {}}})
    for (const ConvKind kind : {ConvKind::normalized_forward, ConvKind::normalized_wgrad, ConvKind::normalized_dgrad}) {
      ConvProblem problem = make_problem(kind, DType::f16, x, w, options);
      problem.deterministic = 1;
      const auto found = configs(problem);
      EXPECT_TRUE(runs(problem)) << name_of(problem);
      EXPECT_TRUE(std::none_of(found.begin(), found.end(), compiled_at_run_time)) << name_of(problem);
      EXPECT_TRUE(configs(make_problem(kind, DType::bf16, x, w, options)).empty()) << name_of(problem);
    }
  EXPECT_TRUE(
      configs(make_problem(ConvKind::normalized_forward, DType::f16, {2, 14, 14, 20}, {16, 3, 3, 20}, {.padding = 1}))
          .empty());
}

TEST_F(CudnnGraph, AChoiceIsRebuiltFromItsNumbers) {
  const ConvProblem problem =
      make_problem(ConvKind::wgrad, DType::bf16, {256, 14, 14, 256}, {256, 3, 3, 256}, {.padding = 1});
  const Descriptor graph = conv_graph(problem, target_);
  const auto found = configs(problem);
  ASSERT_GT(found.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const EngineChoice choice = parse_choice(to_text(choice_of(found[i])));
    const Descriptor again = config_of(graph, choice, target_);
    EXPECT_EQ(choice_of(again), choice);
    EXPECT_TRUE(allowed(problem, again));
    const auto before = build_plan(found[i], target_), after = build_plan(again, target_);
    ASSERT_TRUE(before && after) << to_text(choice);
    EXPECT_EQ(workspace_of(*before), workspace_of(*after));
  }
  expect_error([&] { config_of(graph, {100000, {}}, target_); }, Fault::resource, "cudnnBackend");
  expect_error(
      [&] {
        config_of(graph, {choice_of(found[0]).engine, {{2, 1 << 20}}}, target_);
      },
      Fault::resource, "cudnnBackend");
}

TEST_F(CudnnGraph, RefusesWhatIsNoConvolution) {
  ConvProblem problem = make_problem(ConvKind::forward, DType::f32, {2, 6, 6, 8}, {8, 3, 3, 8}, {.padding = 1});
  problem.p = 7;  // inconsistent with the other members
  expect_error([&] { conv_graph(problem, target_); }, Fault::resource, "cudnnBackendFinalize");
  problem.p = 6;
  problem.dtype = static_cast<int64_t>(DType::u8);
  expect_error([&] { conv_graph(problem, target_); }, Fault::config, "expected f32, bf16 or f16");
  expect_error([] { describe_device("{}"); }, Fault::resource, "cudnnBackend");
}

}  // namespace
}  // namespace dtrain::cuda
