// ConvPlans with the real cuDNN, whose executions are recorded instead of run, on the emulated CUDA runtime.
#include <map>
#include <set>

#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/conv_bn_fusion_cuda.h"
#include "tests/emulation/conv_plans_fixture.h"

namespace dtrain::cuda {

const Cudnn& cudnn() { return noted::cudnn(); }

namespace {

TEST_F(ConvPlansTest, TheFastestIsKeptAndRunsOnTheLiveTensors) {
  // The fifth distinct choice is the fastest.
  std::map<std::string, int> seen;
  Library::get().cost = [&](const EngineChoice& choice) {
    const int turn = seen.emplace(to_text(choice), static_cast<int>(seen.size())).first->second;
    return turn == 4 ? 0.5f : 1.0f + 0.01f * static_cast<float>(turn);
  };
  for (const ConvKind kind : {ConvKind::forward, ConvKind::dgrad, ConvKind::wgrad}) {
    start();
    seen.clear(), executed().clear(), Library::get().addresses.clear();
    run(kind);
    ASSERT_GT(seen.size(), 10u);
    const auto best = std::find_if(seen.begin(), seen.end(), [](const auto& entry) { return entry.second == 4; });
    EXPECT_EQ(executed().back(), best->first);
    EXPECT_EQ(plans_->milliseconds(*context_, problem(kind), operands(), "test"), 0.5f);
    // Until the selection, outputs went to scratch memory.
    const void* const written = kind == ConvKind::forward ? y_.raw() : kind == ConvKind::dgrad ? x_.raw() : w_.raw();
    const auto& all = Library::get().addresses;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool live = std::find(all[i].begin(), all[i].end(), written) != all[i].end();
      EXPECT_EQ(live, i + 1 == all.size()) << i;
    }
    const size_t before = executed().size();
    run(kind);
    EXPECT_EQ(executed().size(), before + 1);
    EXPECT_EQ(executed().back(), best->first);
  }
}

// Host launch overhead does not matter in a CUDA graph.
TEST_F(ConvPlansTest, TheHostsTimeDecidesNothing) {
  const emulation::Streams before = emulation::streams();
  emulation::set_streams(emulation::Streams::eager);  // the device waits for the host
  std::map<std::string, int> seen;
  const auto turn = [&](const EngineChoice& choice) {
    return seen.emplace(to_text(choice), static_cast<int>(seen.size())).first->second;
  };
  Library::get().cost = [&](const EngineChoice& choice) { return turn(choice) == 4 ? 0.5f : 1.0f; };
  Library::get().host = [&](const EngineChoice& choice) { return turn(choice) == 4 ? 0.75f : 0.125f; };
  start();
  run(ConvKind::forward);
  EXPECT_EQ(seen.at(executed().back()), 4);
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::forward), operands(), "test"), 0.5f);
  emulation::set_streams(before);
}

// The op: which problems it poses and where their results go.
TEST_F(ConvPlansTest, TheOpFusesWhereThatIsFaster) {
  const auto context = make_cuda_context();
  const auto tensor = [&](Shape shape, DType type = DType::f32) { return context->zeros(shape, type); };
  const Tensor x = tensor({2, 6, 6, 8}), w = tensor({16, 3, 3, 8}), y = tensor({2, 6, 6, 16}), bias = tensor({16});
  const Conv2dOptions options{.padding = 1};
  // An execution with a fourth tensor, the bias, is fused.
  for (const bool fast : {true, false}) {
    Library::get().cost = [&](const EngineChoice&) {
      return Library::get().pack.size() == 4 ? (fast ? 1.0f : 9.0f) : 5.0f;
    };
    const auto fresh = make_cuda_context();
    cuda::conv2d(*fresh, x, w, bias, options, y);
    const std::vector<void*>& last = Library::get().addresses.back();
    EXPECT_EQ(last.size(), fast ? 4u : 3u);
    EXPECT_EQ(last[2], y.raw());
  }
}

TEST_F(ConvPlansTest, TheOpAddsAndNarrowsByWayOfScratch) {
  const Conv2dOptions options{.padding = 1};
  for (const DType type : {DType::f32, DType::bf16}) {
    const auto context = make_cuda_context();
    const Tensor x = context->zeros({2, 6, 6, 8}, type), w = context->zeros({16, 3, 3, 8}, type);
    const Tensor dy = context->zeros({2, 6, 6, 16}, type);
    const Tensor dw = context->zeros(w.shape()), narrow = context->zeros({16, 3, 3, 3});
    const auto last = [] { return Library::get().addresses.back(); };
    cuda::conv2d_dgrad(*context, dy, w, options, x, false);
    EXPECT_EQ(last(), (std::vector<void*>{x.raw(), w.raw(), dy.raw()}));
    // Executions are only recorded, so accumulation is found not to work.
    cuda::conv2d_dgrad(*context, dy, w, options, x, true);
    EXPECT_NE(last()[0], x.raw());
    cuda::conv2d_wgrad(*context, x, dy, options, dw, false);
    EXPECT_EQ(last()[1] == dw.raw(), type == DType::f32);
    cuda::conv2d_wgrad(*context, x, dy, options, dw, true);
    EXPECT_NE(last()[1], dw.raw());
    cuda::conv2d_wgrad(*context, x, dy, options, narrow, false);
    EXPECT_NE(last()[1], narrow.raw());
  }
}

TEST_F(ConvPlansTest, AGradientIsAddedWithoutCompilation) {
  start();
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::dgrad_add), operands(), "test"), 1);
  EXPECT_GT(executed().size(), 10u);
  run(ConvKind::dgrad_add);
  EXPECT_EQ(Library::get().addresses.back(), (std::vector<void*>{x_.raw(), w_.raw(), y_.raw()}));
}

TEST_F(ConvPlansTest, WhatFailsIsNotChosen) {
  std::map<std::string, int> seen;
  Library::get().cost = [&](const EngineChoice& choice) {
    const int turn = seen.emplace(to_text(choice), static_cast<int>(seen.size())).first->second;
    return turn < 3 ? -1.0f : 2.0f + static_cast<float>(turn);
  };
  start();
  run(ConvKind::forward);
  EXPECT_EQ(seen.at(executed().back()), 3);
}

TEST_F(ConvPlansTest, WithoutMeasurementTheFirstIsTaken) {
  for (const CudaOptions& options : {CudaOptions{.autotune = false}, CudaOptions{.deterministic = true}}) {
    executed().clear();
    start(options);
    run(ConvKind::forward);
    EXPECT_EQ(executed().size(), 1u);
    EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::forward), operands(), "test"), 0);
  }
}

// On a GPU without others; the first that runs is used.
TEST_F(ConvPlansTest, EnginesCompiledAtRunTimeAreTheLastResort) {
  Library::get().all_compiled = true;
  for (const ConvKind kind : {ConvKind::forward, ConvKind::dgrad, ConvKind::wgrad}) {
    start();
    executed().clear();
    run(kind);
    EXPECT_EQ(std::set(executed().begin(), executed().end()).size(), 1u);
  }
}

TEST_F(ConvPlansTest, WhatWasNotMeasuredIsMeasuredWhereThatCounts) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  start({.autotune = false, .plan_file = path});
  run(ConvKind::forward);
  start({.plan_file = path});
  run(ConvKind::forward);
  EXPECT_GT(executed().size(), 10u);
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::forward), operands(), "test"), 1);
  // A measured time is not compared with unmeasured ones.
  start({.autotune = false, .plan_file = path});
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::forward), operands(), "test"), 0);
}

TEST_F(ConvPlansTest, TheFirstIsTakenWhereMemoryIsTight) {
  start({.memory_cap = 4 << 20});
  std::vector<Tensor> full;
  try {
    while (true) full.push_back(context_->empty({16384}, DType::u8));
  } catch (const Error&) {
    full.resize(full.size() - 4);  // enough for a small workspace, not for the output
  }
  Library::get().cost = [&](const EngineChoice&) { return 1.0f; };
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::forward), operands(), "test"), 0);
  EXPECT_TRUE(executed().empty());
}

// Arguments of the convolutions around a batch norm.
TEST_F(ConvPlansTest, TheOpFusesWithBatchNorms) {
  const auto context = make_cuda_context();
  const auto tensor = [&](Shape shape, DType type = DType::f16) { return context->zeros(shape, type); };
  const Tensor x = tensor({2, 6, 6, 8}), w = tensor({16, 3, 3, 8}), y = tensor({2, 6, 6, 16});
  const Tensor sum = tensor({16}, DType::f32), square = tensor({16}, DType::f32), dw = tensor(w.shape(), DType::f32);
  const OnLoad load{tensor({8}), tensor({8})};
  const Conv2dOptions options{.padding = 1};
  const auto last = [] { return Library::get().addresses.back(); };
  EXPECT_TRUE(cuda::on_load_supported(*context, x, load, w, options, y, {sum, square}));
  cuda::conv2d_on_load(*context, x, load, w, options, y, {sum, square});
  EXPECT_EQ(last(), (std::vector<void*>{x.raw(), w.raw(), y.raw(), sum.raw(), square.raw(), load.scale.raw(),
                                        load.shift.raw()}));
  cuda::conv2d_wgrad_on_load(*context, x, load, y, options, dw, false);
  ASSERT_EQ(last().size(), 5u);
  EXPECT_EQ(last()[0], x.raw());
  EXPECT_NE(last()[1], dw.raw());  // through an f16 temporary
  const Tensor c = tensor({8}, DType::f32), dx = tensor(x.shape());
  BatchNormSaved before{x, {}, {}, c, c, c, c, Activation::relu};
  EXPECT_TRUE(cuda::conv2d_dgrad_with_sums(*context, y, w, options, before, {}));
  EXPECT_FALSE(before.dbeta);
  EXPECT_TRUE(cuda::conv2d_dgrad_with_sums(*context, y, w, options, before, dx));
  ASSERT_EQ(last().size(), 13u);
  EXPECT_EQ(last()[0], dx.raw());
  EXPECT_EQ(last()[3], x.raw());
  EXPECT_EQ(last()[8], before.dgamma.raw());
  EXPECT_EQ(last()[9], before.dbeta.raw());
  const Tensor odd = tensor({2, 6, 6, 20}), odd_w = tensor({16, 3, 3, 20});
  EXPECT_FALSE(cuda::on_load_supported(*context, odd, {tensor({20}), tensor({20})}, odd_w, options, y, {sum, square}));
}

TEST_F(ConvPlansTest, NothingIsChosenWhileAStepIsCaptured) {
  start();
  run(ConvKind::forward);
  const auto graph = context_->capture([&] { run(ConvKind::forward); });
  expect_error([&] { context_->capture([&] { run(ConvKind::dgrad); }); }, Fault::config, "test: no plan yet for dgrad");
}

TEST_F(ConvPlansTest, AProblemWithoutAnEngineIsAnError) {
  start();
  // Fused statistics exist for f16 only.
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::forward_statistics), operands(), "test"),
            ConvPlans::kUnsupported);
  EXPECT_TRUE(executed().empty());
  expect_error([&] { run(ConvKind::forward_statistics); }, Fault::config,
               "test: cuDNN has no engine for forward_statistics:bf16:n8");
  // If all engines fail, the message says how.
  Library::get().cost = [](const EngineChoice&) { return -1.0f; };
  expect_error([&] { run(ConvKind::forward); }, Fault::config, "CUDNN_STATUS_EXECUTION_FAILED");
}

}  // namespace
}  // namespace dtrain::cuda
