// ConvPlans and the plan file.
#include <fstream>

#include "tests/emulation/conv_plans_fixture.h"

namespace dtrain::cuda {
namespace {

TEST_F(ConvPlansTest, TheFileSparesTheNextStartTheMeasurement) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  start({.plan_file = path});
  run(ConvKind::forward);
  run(ConvKind::wgrad);
  const std::string forward = executed()[executed().size() - 2], wgrad = executed().back();

  start({.plan_file = path});
  executed().clear();
  run(ConvKind::forward);
  run(ConvKind::wgrad);
  EXPECT_EQ(executed().size(), 2u);
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::wgrad), operands(), "test"), 1);
  EXPECT_TRUE(context_->notices().empty());

  std::ofstream(path, std::ios::app) << "x";  // damaged: autotuned again, with one notice, and rewritten
  start({.plan_file = path});
  executed().clear();
  run(ConvKind::forward);
  run(ConvKind::wgrad);
  EXPECT_GT(executed().size(), 2u);
  ASSERT_EQ(context_->notices().size(), 1u);
  EXPECT_NE(context_->notices()[0].find(path), std::string::npos);
  start({.plan_file = path});
  executed().clear();
  run(ConvKind::forward);
  EXPECT_EQ(executed().size(), 1u);
}

// Building a plan may take seconds.
TEST_F(ConvPlansTest, TimesOfTheFileAreComparedWithoutBuilding) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  start({.plan_file = path});
  run(ConvKind::forward);
  run(ConvKind::dgrad);
  EXPECT_GT(Library::get().built, 10);

  start({.plan_file = path});
  Library::get().built = 0, executed().clear();
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::forward), operands(), "test"), 1);
  EXPECT_EQ(plans_->milliseconds(*context_, problem(ConvKind::dgrad), operands(), "test"), 1);
  EXPECT_EQ(Library::get().built, 0);
  run(ConvKind::dgrad);
  EXPECT_EQ(Library::get().built, 1);
  EXPECT_EQ(executed().size(), 1u);
}

// Without autotuning, engines that need compilation are not used for fusions.
TEST_F(ConvPlansTest, WhatIsNotMeasuredIsNotCompiled) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  Library::get().all_compiled = true;
  ConvProblem with_bias = problem(ConvKind::forward_bias);
  with_bias.dtype = with_bias.output_dtype = static_cast<int64_t>(DType::f32);
  const auto fusion = [&] { return plans_->milliseconds(*context_, with_bias, operands_with_bias(), "test"); };
  start({.plan_file = path});
  EXPECT_EQ(fusion(), 1);
  for (const CudaOptions& options : {CudaOptions{.autotune = false}, CudaOptions{.deterministic = true},
                                     CudaOptions{.autotune = false, .plan_file = path}}) {
    start(options);
    Library::get().built = 0;
    EXPECT_EQ(fusion(), ConvPlans::kUnsupported);
    EXPECT_EQ(Library::get().built, 0);
  }
}

TEST_F(ConvPlansTest, WhatOthersAddToTheFileIsKeptAndUsed) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  start({.plan_file = path});
  run(ConvKind::forward);
  const std::unique_ptr<Context> context = std::move(context_);
  const std::unique_ptr<ConvPlans> plans = std::move(plans_);
  start({.plan_file = path});
  run(ConvKind::dgrad);
  plans->run(*context, problem(ConvKind::wgrad), operands(), "test");
  executed().clear();
  plans->run(*context, problem(ConvKind::dgrad), operands(), "test");
  EXPECT_EQ(executed().size(), 1u);
  start({.plan_file = path});
  executed().clear();
  for (const ConvKind kind : {ConvKind::forward, ConvKind::dgrad, ConvKind::wgrad}) run(kind);
  EXPECT_EQ(executed().size(), 3u);
}

TEST_F(ConvPlansTest, AnEngineThatIsGoneIsReplaced) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  start({.plan_file = path});
  run(ConvKind::forward);
  std::ifstream in(path);
  std::string title, identity;
  std::getline(in, title), std::getline(in, identity);
  PlanBook book = read_plans(path, identity);
  ASSERT_EQ(book.size(), 1u);
  book.begin()->second.choice.engine = 100000;
  add_plans(book, path, identity);
  start({.plan_file = path});
  executed().clear();
  run(ConvKind::forward);
  EXPECT_GT(executed().size(), 10u);
  ASSERT_EQ(context_->notices().size(), 1u);
  EXPECT_NE(read_plans(path, identity).begin()->second.choice.engine, 100000);
}

TEST_F(ConvPlansTest, AFileThatCannotBeWrittenIsSaidOnce) {
  start({.plan_file = "/proc/no/such/folder"});
  run(ConvKind::forward);
  run(ConvKind::dgrad);
  ASSERT_EQ(context_->notices().size(), 1u);
  EXPECT_NE(context_->notices()[0].find("cannot be written"), std::string::npos);
}

TEST_F(ConvPlansTest, AChoiceBetweenCompositionsIsMadeOnceAndKept) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  int asked = 0;
  const auto choose = [&](const std::string& name, bool takes) {
    return plans_->chosen(*context_, name, [&] {
      ++asked;
      return takes;
    });
  };
  for (int start_number = 0; start_number < 2; ++start_number) {
    start({.plan_file = path});
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(choose("this", true));
      EXPECT_FALSE(choose("that", false));
    }
    EXPECT_EQ(asked, 2);
  }
  for (const CudaOptions& options : {CudaOptions{.autotune = false}, CudaOptions{.deterministic = true}}) {
    start(options);
    EXPECT_FALSE(choose("this", true));
  }
  EXPECT_EQ(asked, 2);
  // Without memory there is none in this run.
  start({.plan_file = path});
  const auto lacks_memory = [&]() -> bool { throw Error(Fault::resource, "no memory"); };
  EXPECT_FALSE(plans_->chosen(*context_, "other", lacks_memory));
  EXPECT_FALSE(choose("other", true));
  start({.plan_file = path});
  EXPECT_TRUE(choose("other", true));
  expect_error([&] { context_->capture([&] { choose("new", true); }); }, Fault::config, "new: not autotuned yet");
}

// As for batch-norm fusions: measured by one program, reused by later ones.
TEST_F(ConvPlansTest, WhatIsKnownOfACompositionIsInTheFile) {
  const TempDirectory directory;
  const std::string path = directory / "plans";
  start({.plan_file = path});
  EXPECT_FALSE(plans_->known(*context_, "sums"));
  plans_->keep(*context_, "sums", {true, {}, 0.25f});
  plans_->chosen(*context_, "on_load", [] { return true; });
  plans_->chosen(*context_, "in_dgrad", [] { return false; });
  start({.plan_file = path});
  EXPECT_EQ(plans_->known(*context_, "sums")->milliseconds, 0.25f);
  EXPECT_TRUE(plans_->known(*context_, "on_load")->supported);
  EXPECT_FALSE(plans_->known(*context_, "in_dgrad")->supported);
  for (const CudaOptions& options :
       {CudaOptions{.autotune = false, .plan_file = path}, CudaOptions{.deterministic = true, .plan_file = path}}) {
    start(options);
    EXPECT_FALSE(plans_->known(*context_, "on_load"));
  }
}

}  // namespace
}  // namespace dtrain::cuda
