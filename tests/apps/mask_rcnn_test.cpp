// dtrain-mask-rcnn end to end: on generated shapes, other programs' results, and four COCO images.
#include "dtrain/data/jpeg.h"
#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

TEST_F(MaskRcnn, ResumesBitIdentical) {
  const ProgramResult whole = run_program("dtrain-mask-rcnn", train_words("whole", 6));
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_EQ(run_program("dtrain-mask-rcnn", train_words("parts", 4)).code, 0);
  const ProgramResult rest = run_program("dtrain-mask-rcnn", train_words("parts", 6));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find("Restored step 4 from "), std::string::npos) << rest.out;
  EXPECT_EQ(read_file(weights("whole", 6)), read_file(weights("parts", 6)));
  EXPECT_NE(whole.out.find("mask_loss "), std::string::npos) << whole.out;
  EXPECT_NE(whole.out.find("val-mAP(segm)/IoU=0.5:0.95: "), std::string::npos) << whole.out;
  EXPECT_NE(whole.out.find("evaluating: 3 of 6 images\n"), std::string::npos) << whole.out;
}

TEST_F(MaskRcnn, EvaluatesAndPredictsAfterTraining) {
  ASSERT_EQ(run_program("dtrain-mask-rcnn", train_words("run", 2)).code, 0);
  const Words small = {"--config", "TEST.RESULT_SCORE_THRESH=0.01", "TEST.RESULT_SCORE_THRESH_VIS=0.01"};
  const ProgramResult scored =
      run_program("dtrain-mask-rcnn",
                  joined_words({"eval", "--load=" + path("run"), "--data_dir=" + path("data"), "--device=cpu"}, small));
  EXPECT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("val-mAP(bbox)/IoU=0.5: "), std::string::npos) << scored.out;
  const std::vector<std::byte> jpeg = data::encode_jpeg(data::Image(kSide, kSide).view());
  write_file(path("half.jpg"), {reinterpret_cast<const char*>(jpeg.data()), jpeg.size() - 30});
  EXPECT_EQ(scored.out.find("evaluating: "), std::string::npos) << "ten batches are few";
  // A moved file keeps its metadata, including categories.
  std::filesystem::copy_file(weights("run", 2), path("moved.safetensors"));
  const ProgramResult found = run_program(
      "dtrain-mask-rcnn", joined_words({"predict", "--load=" + path("moved.safetensors"), "--device=cpu", "--json",
                                        "--output=" + path("pictures"), path("data/val/0.png"), path("data/val/1.png"),
                                        path("half.jpg"), path("data/annotations/instances_val.json")},
                                       small));
  EXPECT_EQ(found.code, 2) << found.err;  // the third is not an image; the others are processed
  const Json line = Json::parse(found.out.substr(0, found.out.find('\n')));
  EXPECT_EQ(line["file"], path("data/val/0.png"));
  EXPECT_EQ(line["width"], kSide);
  for (const Json& one : line["detections"]) {
    EXPECT_TRUE(one["category_id"] == 2 || one["category_id"] == 7) << one;
    EXPECT_EQ(one["segmentation"]["size"], (Json{kSide, kSide}));
  }
  EXPECT_TRUE(std::filesystem::exists(path("pictures/1.png")));
  EXPECT_TRUE(contains(found.out, R"("warning":"Premature end of JPEG file")")) << found.out;
  EXPECT_TRUE(contains(found.err, path("half.jpg") + ": damaged image: Premature end of JPEG file")) << found.err;
  const size_t last = found.out.rfind('\n', found.out.size() - 2) + 1;
  const Json failed = Json::parse(found.out.substr(last));
  EXPECT_EQ(failed["file"], path("data/annotations/instances_val.json"));
  EXPECT_TRUE(failed.contains("error")) << failed;
}

TEST_F(MaskRcnn, TrainsForEpochs) {
  Words words = train_words("run", 9);
  std::ranges::replace(words, "--num_batches=9", "--num_epochs=0.5");  // of six images
  words.push_back("TRAIN.WARMUP=1");
  ASSERT_EQ(run_program("dtrain-mask-rcnn", words).code, 0);
  EXPECT_TRUE(std::filesystem::exists(weights("run", 2)));
  EXPECT_FALSE(std::filesystem::exists(weights("run", 4)));
}

TEST_F(MaskRcnn, TrainsOnTheUsersDataByDefault) {
  std::filesystem::remove(path("data/annotations/instances_val.json"));
  Words words = train_words("run", 9);
  std::erase(words, "--num_batches=9");
  words.push_back("TRAIN.LR_EPOCH_SCHEDULE=[(1,0.1),(2,None)]");
  const ProgramResult result = run_program("dtrain-mask-rcnn", words);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("end at step 6 (epoch 2)\nepoch: 3 steps\n"
                            "data: 6 training images, 2 epochs in 6 steps\n"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.err.find("data/annotations: no validation data, skipping evaluations"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.out.find("mAP"), std::string::npos) << result.out;
  EXPECT_TRUE(std::filesystem::exists(weights("run", 6)));
}

TEST_F(MaskRcnn, ReportsErrors) {
  const auto error = [&](const Words& words, int code) {
    const ProgramResult result = run_program("dtrain-mask-rcnn", words);
    EXPECT_EQ(result.code, code) << result.err;
    return result.err;
  };
  EXPECT_NE(error({"trian"}, 1).find("did you mean train?"), std::string::npos);
  for (const char* flag :
       {"--num_eval_batches=3", "--num_eval_epochs=1", "--num_warmup_batches=2", "--sync_batch_norm"})
    EXPECT_NE(error({"train", "--device=cpu", "--data_dir=" + path("data"), flag}, 1).find(std::string(flag, 8)),
              std::string::npos);
  EXPECT_NE(error({"train", "--device=cpu"}, 1).find("--data_dir"), std::string::npos);
  EXPECT_NE(error({"train", "--device=cpu", "--data_dir=" + path("none")}, 2).find("instances_*train*.json"),
            std::string::npos);
  EXPECT_NE(error({"train", "--config", "FRCNN.BATCH_PER_IMG=3"}, 1).find("FRCNN.BATCH_PER_IM"), std::string::npos);
  std::filesystem::rename(path("data/train/3.png"), path("data/3.png"));
  EXPECT_NE(error({"train", "--device=cpu", "--data_dir=" + path("data")}, 2)
                .find("instances_train.json: 1 of 6 image files are missing, such as " + path("data/train/3.png")),
            std::string::npos)
      << "before the first step";
  EXPECT_NE(error({"eval", "--device=cpu"}, 1).find("--load"), std::string::npos);
  EXPECT_NE(error({"predict", "--load=w", "--output=" + path("pictures"), "a/0.png", "b/0.jpg", "--device=cpu"}, 1)
                .find("two images would become 0.png"),
            std::string::npos);
  EXPECT_NE(error({"predict", "--load=" + path("data/val/0.png"), "x.jpg", "--device=cpu"}, 5).find("0.png"),
            std::string::npos);
}

TEST(MaskRcnnOnCoco, ScoresResultsAsPycocotoolsDoes) {
  const std::filesystem::path folder = test_data("coco_eval");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  const Json expected = Json::parse(read_file((folder / "pycocotools_stats.json").string()));
  for (const std::string type : {"bbox", "segm"}) {
    const std::string results = "instances_val2014_fake" + type + "100_results.json";
    const ProgramResult scored =
        run_program("dtrain-mask-rcnn", {"eval", "--annotations=" + (folder / "instances_val2014_100.json").string(),
                                         "--results=" + (folder / results).string(), "--iou_type=" + type, "--json"});
    ASSERT_EQ(scored.code, 0) << scored.err;
    const Json line = Json::parse(scored.out);
    const Json& statistics = expected["val2014_100/fake" + type + "100"]["stats"];
    ASSERT_EQ(line["stats"].size(), 12u);
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(line["stats"][i], statistics[i], 1e-9) << type << " " << i;
  }
}

}  // namespace
}  // namespace dtrain
