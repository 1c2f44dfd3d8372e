// A small Mask R-CNN overfits four COCO images: end-to-end test of backbone, pyramid, proposals, heads, losses and
// evaluation. Takes about a minute, so it is skipped with sanitizers.
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain {
namespace {

// Training images of coco_mini with one or two large objects each, of five categories.
constexpr std::array<int, 4> kByHeart = {24577, 187334, 286720, 542720};

const Words kConfig = {"PREPROC.TRAIN_SHORT_EDGE_SIZE=96",
                       "PREPROC.TEST_SHORT_EDGE_SIZE=96",
                       "PREPROC.MAX_SIZE=144",
                       "PREPROC.FLIP_PROBABILITY=0",
                       "BACKBONE.BOTTLENECK=False",
                       "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]",
                       "BACKBONE.FREEZE_AT=0",
                       "BACKBONE.NORM=BN",
                       "BACKBONE.FREEZE_AFFINE=False",
                       "FPN.NUM_CHANNEL=64",
                       "FPN.FRCNN_FC_HEAD_DIM=256",
                       "MRCNN.HEAD_DIM=64",
                       "FRCNN.BATCH_PER_IM=32",
                       "RPN.BATCH_PER_IM=64",
                       "TRAIN.BASE_LR=0.012",
                       "TRAIN.WARMUP=50",
                       "TRAIN.EVAL_PERIOD=0"};

// The same four for training and validation.
void copy_four(const std::filesystem::path& coco, const std::filesystem::path& to) {
  const std::set<int> chosen(kByHeart.begin(), kByHeart.end());
  const Json all = Json::parse(read_file((coco / "annotations/instances_train2017.json").string()));
  Json four = {{"images", Json::array()}, {"annotations", Json::array()}, {"categories", Json::array()}};
  for (const char* folder : {"annotations", "train", "val"}) std::filesystem::create_directories(to / folder);
  for (const Json& image : all["images"]) {
    if (!chosen.contains(image["id"])) continue;
    four["images"].push_back(image);
    const std::string name = image["file_name"];
    for (const char* split : {"train", "val"}) std::filesystem::copy_file(coco / "train2017" / name, to / split / name);
  }
  std::set<int> categories;
  for (const Json& object : all["annotations"]) {
    if (!chosen.contains(object["image_id"])) continue;
    four["annotations"].push_back(object);
    categories.insert(object["category_id"].get<int>());
  }
  for (const Json& category : all["categories"])
    if (categories.contains(category["id"])) four["categories"].push_back(category);
  for (const char* split : {"train", "val"})
    write_file((to / concat("annotations/instances_", split, ".json")).string(), four.dump());
}

// The number after "NAME: ", or -1.
double number_after(const std::string& output, const std::string& name) {
  const size_t at = output.find(name + ": ");
  double value = -1;
  if (at != std::string::npos) std::istringstream(output.substr(at + name.size() + 2)) >> value;
  return value;
}

TEST(MaskRcnnOverfit, OverfitsFourImages) {
  const std::filesystem::path coco = test_data("coco_mini");
  if (!std::filesystem::exists(coco)) GTEST_SKIP() << "SKIPPED: " << coco;
  const TempDirectory scratch;
  copy_four(coco, scratch / "data");
  const std::string data = "--data_dir=" + (scratch / "data").string(), run = (scratch / "run").string();
  const ProgramResult trained =
      run_program("dtrain-mask-rcnn", joined_words({"train", data, "--train_dir=" + run, "--device=cpu",
                                                    "--batch_size=4", "--num_batches=300", "--config"},
                                                   kConfig));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const ProgramResult scored = run_program(
      "dtrain-mask-rcnn", joined_words({"eval", data, "--load=" + run + "/checkpoints/step-300/model.safetensors",
                                        "--device=cpu", "--config"},
                                       kConfig));
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_GT(number_after(scored.out, "val-mAP(bbox)/IoU=0.5"), 0.9) << scored.out;
  EXPECT_GT(number_after(scored.out, "val-mAP(segm)/IoU=0.5"), 0.9) << scored.out;
  EXPECT_EQ(number_after(trained.out, "val-mAP(bbox)/IoU=0.75"), number_after(scored.out, "val-mAP(bbox)/IoU=0.75"))
      << "the model as it was trained and as it is loaded";
}

}  // namespace
}  // namespace dtrain
