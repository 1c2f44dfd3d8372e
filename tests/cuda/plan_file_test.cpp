#include "libdtrain/cuda/plan_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "tests/testing.h"

namespace dtrain::cuda {
namespace {

ConvProblem bottleneck(ConvKind kind) {
  ConvProblem o{};
  o.kind = kind;
  o.dtype = o.output_dtype = static_cast<int64_t>(DType::bf16);
  o.n = 256, o.h = 57, o.w = 56, o.c = 128, o.k = 64, o.r = 3, o.s = 1, o.p = 29, o.q = 28;
  o.stride_h = o.stride_w = 2, o.dilation_h = o.dilation_w = 1;
  o.pad_top = 1, o.pad_bottom = 2;
  o.groups = 2, o.alignment = 16;
  return o;
}

TEST(ConvProblem, EqualNumbersHaveEqualBytes) {
  // On uninitialised memory, like a local variable.
  alignas(ConvProblem) unsigned char dirty[2][sizeof(ConvProblem)];
  std::memset(dirty[0], 0x5a, sizeof dirty[0]);
  std::memset(dirty[1], 0xa5, sizeof dirty[1]);
  const auto* a = new (dirty[0]) ConvProblem(bottleneck(ConvKind::wgrad));
  auto* b = new (dirty[1]) ConvProblem(bottleneck(ConvKind::wgrad));
  EXPECT_EQ(std::memcmp(dirty[0], dirty[1], sizeof dirty[0]), 0);
  EXPECT_EQ(std::hash<ConvProblem>()(*a), std::hash<ConvProblem>()(*b));
  b->pad_bottom = 1;
  EXPECT_FALSE(*a == *b);
}

TEST(ConvProblem, NamesTellProblemsApart) {
  const ConvProblem o = bottleneck(ConvKind::dgrad_add);
  EXPECT_EQ(name_of(o), "dgrad_add:bf16:n256:h57x56:c128:k64:r3x1:s2x2:d1x1:p1,2,0,0:g2");
  // All members except the derived output extents are in the name.
  int64_t ConvProblem::*const members[] = {&ConvProblem::n,
                                           &ConvProblem::h,
                                           &ConvProblem::w,
                                           &ConvProblem::c,
                                           &ConvProblem::k,
                                           &ConvProblem::r,
                                           &ConvProblem::s,
                                           &ConvProblem::stride_h,
                                           &ConvProblem::stride_w,
                                           &ConvProblem::dilation_h,
                                           &ConvProblem::dilation_w,
                                           &ConvProblem::pad_top,
                                           &ConvProblem::pad_bottom,
                                           &ConvProblem::pad_left,
                                           &ConvProblem::pad_right,
                                           &ConvProblem::groups,
                                           &ConvProblem::alignment,
                                           &ConvProblem::tf32,
                                           &ConvProblem::deterministic};
  for (int64_t ConvProblem::*const member : members) {
    ConvProblem other = o;
    other.*member += 1;
    EXPECT_NE(name_of(other), name_of(o));
  }
  ConvProblem to_f32 = bottleneck(ConvKind::wgrad);
  to_f32.output_dtype = static_cast<int64_t>(DType::f32);
  EXPECT_EQ(name_of(to_f32), "wgrad:bf16:n256:h57x56:c128:k64:r3x1:s2x2:d1x1:p1,2,0,0:g2:to_f32");
}

TEST(ConvProblem, LayoutsAreNhwcInTheOrderOfTheLibrary) {
  const ConvProblem o = bottleneck(ConvKind::forward);
  const TensorLayout x = image_layout(o), w = filter_layout(o), y = output_layout(o);
  using Four = std::array<int64_t, 4>;
  EXPECT_EQ(x.extents, (Four{256, 128, 57, 56}));
  EXPECT_EQ(x.strides, (Four{57 * 56 * 128, 1, 56 * 128, 128}));
  EXPECT_EQ(w.extents, (Four{64, 64, 3, 1}));
  EXPECT_EQ(w.strides, (Four{3 * 64, 1, 64, 64}));
  EXPECT_EQ(y.extents, (Four{256, 64, 29, 28}));
  EXPECT_EQ(y.strides, (Four{29 * 28 * 64, 1, 28 * 64, 64}));
}

TEST(EngineChoice, SurvivesItsText) {
  for (const EngineChoice& choice : {EngineChoice{62, {{2, 4}, {13, 0}, {27, 8}}}, EngineChoice{0, {}}})
    EXPECT_EQ(parse_choice(to_text(choice)), choice);
  EXPECT_EQ(to_text(EngineChoice{62, {{2, 4}, {13, 0}}}), "62;2=4;13=0");
  for (const char* text : {"", "x", "62;", "62;2", "62;2=", "62,2=4", "62;2=4x", "62;2=4;", "99999999999999999999"})
    EXPECT_THROW(parse_choice(text), Error) << text;
}

const std::string kIdentity = "NVIDIA H200, 132 multiprocessors, driver 13000, cuDNN 91900";

PlanBook sample_book() {
  return {{name_of(bottleneck(ConvKind::forward)), {true, {62, {{2, 4}, {13, 0}}}, 0.1f}},
          {name_of(bottleneck(ConvKind::dgrad)), {true, {0, {}}, 1e-5f}},
          {name_of(bottleneck(ConvKind::forward_statistics)), {false, {}, 0}}};
}

TEST(PlanFile, SurvivesItsText) {
  EXPECT_EQ(parse_plans(to_text(sample_book(), kIdentity), kIdentity), sample_book());
  EXPECT_EQ(parse_plans(to_text(PlanBook{}, kIdentity), kIdentity), PlanBook{});
}

// Written by add_plans() of 0.1.
TEST(PlanFile, PlansOfTheFirstVersionAreUsed) {
  EXPECT_EQ(read_plans(source_dir() / "tests/upgrade/0.1/files/gpu.plans", kIdentity), sample_book());
}

TEST(PlanFile, IsReplacedOnTheDiskAndMayBeAbsent) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  EXPECT_EQ(read_plans(path, kIdentity), PlanBook{});
  EXPECT_EQ(add_plans(sample_book(), path, kIdentity), sample_book());
  EXPECT_EQ(read_plans(path, kIdentity), sample_book());
  expect_error([&] { read_plans(path, "another GPU"); }, Fault::resource, "this machine is \"another GPU\"");
  EXPECT_EQ(add_plans({}, path, "another GPU"), PlanBook{});
  EXPECT_EQ(read_plans(path, "another GPU"), PlanBook{});
  expect_error([&] { add_plans({}, directory / "no/such/folder", kIdentity); }, Fault::resource, "no/such");
}

TEST(PlanFile, NewPlansTakeThePlaceOfOldOnes) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  add_plans({{"a", {true, {1, {}}, 1}}, {"b", {true, {1, {}}, 1}}}, path, kIdentity);
  const PlanBook all{{"a", {true, {1, {}}, 1}}, {"b", {true, {2, {}}, 2}}, {"c", {true, {2, {}}, 2}}};
  EXPECT_EQ(add_plans({{"b", {true, {2, {}}, 2}}, {"c", {true, {2, {}}, 2}}}, path, kIdentity), all);
  EXPECT_EQ(read_plans(path, kIdentity), all);
}

TEST(PlanFile, ProcessesAddToItAtTheSameTime) {
  constexpr int kProcesses = 4, kPlans = 12;
  const TempDirectory directory;
  const std::string path = directory / "plans";
  for (int process = 0; process < kProcesses; ++process)
    if (::fork() == 0) {
      int status = 0;
      try {
        for (int i = 0; i < kPlans; ++i)
          add_plans({{concat("process", process, ":", i), {true, {i, {}}, 1}}}, path, kIdentity);
      } catch (const std::exception&) {
        status = 1;
      }
      ::_exit(status);
    }
  for (int process = 0; process < kProcesses; ++process) {
    int status = -1;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(read_plans(path, kIdentity).size(), size_t{kProcesses * kPlans});
}

TEST(PlanFile, IsRefusedWhereAByteIsGoneOrChanged) {
  const std::string text = to_text(sample_book(), kIdentity);
  for (size_t i = 0; i < text.size(); ++i) {
    expect_error([&] { parse_plans(text.substr(0, i), kIdentity); }, Fault::resource, "");
    std::string changed = text;
    changed[i] ^= 1;
    expect_error([&] { parse_plans(changed, kIdentity); }, Fault::resource, "");
  }
  expect_error([&] { parse_plans(text + "x", kIdentity); }, Fault::resource, "damaged");
}

}  // namespace
}  // namespace dtrain::cuda
