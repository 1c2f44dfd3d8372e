// dtrain-cnn-benchmarks --model=ssd300 on generated shapes in COCO format and in TFRecords.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain {
namespace {

// Two images of the fixture, to limit the time.
class Ssd300Program : public MaskRcnn {
 protected:
  void SetUp() override {
    MaskRcnn::SetUp();
    keep(2);
  }

  // First images of both splits, with their objects.
  void keep(size_t images) {
    for (const char* split : {"train", "val"}) {
      const std::string file = path(std::string("data/annotations/instances_") + split + ".json");
      Json truth = Json::parse(read_file(file));
      for (const char* list : {"images", "annotations"})
        truth[list].erase(truth[list].begin() + static_cast<std::ptrdiff_t>(images), truth[list].end());
      write_file(file, truth.dump());
    }
  }

  ProgramResult run(const Words& words) const {
    return run_program("dtrain-cnn-benchmarks",
                       joined_words({"--model=ssd300", "--data_name=coco", "--device=cpu", "--batch_size=1",
                                     "--num_warmup_batches=0", "--display_every=1"},
                                    words));
  }
  Words train_for(int steps, const std::string& train_dir) const {
    return {"--data_dir=" + path("data"), "--train_dir=" + path(train_dir), "--num_batches=" + std::to_string(steps)};
  }
};

bool holds(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

TEST_F(Ssd300Program, ResumesBitIdentical) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: four steps, each of which takes ten seconds with sanitizers";
  const ProgramResult whole = run(train_for(2, "whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(holds(whole.out, R"(\n2\timages/sec: [0-9.]+ \+/- [0-9.]+ \(jitter = [0-9.]+\)\t[0-9.]+\n)"))
      << whole.out;
  ASSERT_EQ(run(train_for(1, "parts")).code, 0);
  const ProgramResult rest = run(train_for(2, "parts"));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find("Restored step 1 from "), std::string::npos) << rest.out;
  EXPECT_EQ(read_file(weights("whole", 2)), read_file(weights("parts", 2)));
}

TEST_F(Ssd300Program, EvaluatesAsItTrainsAndAfterwards) {
  const ProgramResult trained = run(joined_words(
      train_for(1, "run"), {"--eval_during_training_every_n_steps=1", "--benchmark_log_dir=" + path("log")}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* line :
       {R"( Average Precision  \(AP\) @\[ IoU=0.50:0.95 \| area=   all \| maxDets=100 \] = )",
        R"(\nCurrent AP: 0\.[0-9]{5}\nAccuracy @ 1 = 0\.[0-9]{4} Accuracy @ 5 = 0.0000 \[2 examples\])"})
    EXPECT_TRUE(holds(trained.out, line)) << trained.out;
  EXPECT_NE(read_file(path("log/metric.log")).find("COCO/ARmax100"), std::string::npos);
  const ProgramResult again = run({"--eval", "--data_dir=" + path("data"), "--train_dir=" + path("run")});
  ASSERT_EQ(again.code, 0) << again.err;
  const auto accuracy = [](const std::string& text) {
    const size_t at = text.find("Current AP");
    return at == text.npos ? "none" : text.substr(at, text.find('[', at) - at);
  };
  EXPECT_EQ(accuracy(again.out), accuracy(trained.out));
}

TEST_F(Ssd300Program, RanksTrainOneModelFromRecords) {
  const ProgramResult made = run_program(
      "dtrain-data", {"coco", "--input=" + path("data"), "--output=" + path("records"), "--year=", "--shards=1"});
  ASSERT_EQ(made.code, 0) << made.err;
  const ProgramResult trained =
      run({"--data_dir=" + path("records"), "--num_gpus=2", "--num_batches=1", "--verify_weights_every=1",
           "--eval_during_training_every_n_steps=1", "--collect_eval_results_async"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(holds(trained.out, R"(Accuracy @ 1 = 0\.[0-9]{4} Accuracy @ 5 = 0.0000 \[2 examples\])")) << trained.out;
}

TEST_F(Ssd300Program, RunsOnSyntheticDataInBothDirections) {
  const ProgramResult trained = run({"--num_batches=1"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("Dataset:     coco (synthetic)"), std::string::npos) << trained.out;
  const ProgramResult forward = run({"--num_batches=1", "--forward_only"});
  EXPECT_EQ(forward.code, 0) << forward.err;
}

TEST_F(Ssd300Program, ReportsUnsupportedFlags) {
  const auto refuses = [&](int code, const std::string& line, const Words& words) {
    const ProgramResult result = run(words);
    EXPECT_EQ(result.code, code) << line;
    EXPECT_NE(result.err.find(line), std::string::npos) << result.err;
  };
  refuses(1, "ssd300 needs detection data (coco)", {"--data_name=imagenet"});
  refuses(1, "ssd300 needs detection data (coco)", {"--model=resnet20"});
  refuses(1, "--backbone_model_path: for --model=ssd300 only",
          {"--model=resnet20", "--data_name=cifar10", "--backbone_model_path=x"});
  refuses(1, "--label_smoothing: for image classifiers only", {"--label_smoothing=.1"});
  refuses(1, "an evaluation of ssd300 needs --data_dir", {"--eval", "--train_dir=" + path("run")});
  refuses(5, "missing.safetensors", {"--num_batches=1", "--backbone_model_path=" + path("missing.safetensors")});
  std::filesystem::create_directories(path("empty/annotations"));
  refuses(2, "empty/annotations: no file instances_*train*.json", {"--data_dir=" + path("empty"), "--num_batches=1"});
}

}  // namespace
}  // namespace dtrain
