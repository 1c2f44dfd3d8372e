// dtrain-info --conv lists the algorithms of a convolution.
#include "apps/info/conv.h"

#include "tests/testing.h"

namespace dtrain::info {
namespace {

std::string lines_of(const std::string& text, const std::string& forced = "") {
  const auto context = make_cpu_context({.threads = 2, .isa = CpuIsa::avx2, .conv_algorithm = forced});
  std::string all;
  for (const std::string& line : conv_lines(*context, text)) all += line + "\n";
  return all;
}

TEST(InfoConv, MarksTheFirstThatAppliesAndSaysWhyOthersDoNot) {
  EXPECT_EQ(lines_of("32x64x56x56,64,3x3,1,1,f32,forward"),
            "forward\n"
            "    depthwise          needs groups = channels = filters\n"
            "  * winograd\n"
            "    implicit_gemm      winograd comes first\n"
            "    onednn             winograd comes first\n");
  EXPECT_EQ(lines_of("32x3x224x224,64,7x7,2,3,f32,forward"),
            "forward\n"
            "    depthwise          needs groups = channels = filters\n"
            "    winograd           for 3x3 kernels of stride 1 and one group\n"
            "    implicit_gemm      too few channels for the inner dimension of a GEMM\n"
            "  * onednn\n");
  EXPECT_TRUE(contains(lines_of("32x64x56x56,64,3x3,1,1,f32,wgrad"), "sparse_grad        only if most rows"));
  EXPECT_TRUE(
      contains(lines_of("32x64x56x56,64,3x3,1,1,bf16,forward"), "the instruction set has no dot products of bf16"));
  EXPECT_TRUE(contains(lines_of("16x64x56x56,256,1x1,1,0,f32"), "  * bn_fused_grad"));
  EXPECT_TRUE(contains(lines_of("1x64x56x56,64,3x3,1,1,int8"), "inference\n    implicit_gemm_amx"));
}

TEST(InfoConv, NamesAForcedAlgorithm) {
  const std::string lines = lines_of("32x64x56x56,64,3x3,1,1,f32,forward", "onednn");
  EXPECT_TRUE(contains(lines, "    winograd           onednn is forced\n")) << lines;
  EXPECT_TRUE(contains(lines, "  * onednn\n")) << lines;
  const std::string wgrad = lines_of("32x64x56x56,64,3x3,1,1,f32,wgrad", "onednn");
  EXPECT_TRUE(contains(wgrad, "    sparse_grad        onednn is forced\n")) << wgrad;
  EXPECT_TRUE(contains(lines_of("32x64x56x56,64,3x3,1,1,f32,forward", "sparse_grad"),
                       "  * winograd           sparse_grad, which is forced, does not compute it\n"));
}

TEST(InfoConv, ListsTheAlgorithmsOfForwardForInferenceThatIsComputedAsInTraining) {
  const std::string forward = lines_of("1x64x56x56,64,1x1,1,0,bf16,forward");
  EXPECT_EQ(lines_of("1x64x56x56,64,1x1,1,0,bf16,inference"), "inference" + forward.substr(forward.find('\n')));
}

TEST(InfoConv, RefusesOtherTexts) {
  const auto refused = [](const std::string& text, const std::string& part) {
    expect_error([&] { lines_of(text); }, Fault::config, part);
  };
  refused("", "six or seven parts");
  refused("32x64x56,64,3x3,1,1,f32", "\"32x64x56\": expected 4 numbers with an x between them");
  refused("32x64x56x56,0,3x3,1,1,f32", "\"0\": expected a number from 1 to 32768");
  refused("32x64x56x56,64,3x3,1,-1,f32", "\"-1\": expected a number from 0");
  refused("32x64x56x56,64,3x3,1,1,f64", "\"f64\": expected f32, bf16 or int8");
  refused("32x64x56x56,64,3x3,1,1,f32,backward", "one of forward, dgrad, wgrad, inference, bn_grad");
  refused("32x64x56x56,64,3x3,1,1,int8,forward", "a pass of int8: one of inference");
  refused("1x64x2x2,64,5x5,1,0,f32", "does not fit an image of 2");
}

}  // namespace
}  // namespace dtrain::info
