// Front ends of dtrain-mask-rcnn for TensorPack's and AWS Mask R-CNN's command lines, and TensorPack's log.
#include "apps/mask_rcnn/front_end.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "apps/cli/values.h"
#include "apps/observers/tensorpack_log.h"
#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using mask_rcnn::Original;

// The command that a line is translated to.
std::string translation(Original original, const std::string& line, int gpus = 1) {
  const auto made = mask_rcnn::translated(original, cli::split_words("program " + line), gpus);
  return fmt::format("{} {}", made->command, fmt::join(made->arguments, " "));
}

TEST(DetectorFrontEnds, TranslateTraining) {
  EXPECT_EQ(
      translation(Original::tensorpack_train, "--load W.npz --config TRAINER=horovod MODE_MASK=True -- --device=cpu"),
      "train --train_dir=train_log/maskrcnn --compatible_with=tensorpack --preset=tensorpack --load=W.npz "
      "--device=cpu --config TRAINER=horovod MODE_MASK=True");
  EXPECT_EQ(translation(Original::aws_train,
                        "--logdir L --fp16 --images_per_epoch 1000 --throughput_log_freq=5 --async_eval --config "
                        "TRAIN.IMAGES_PER_EPOCH=7"),
            "train --train_dir=L --compatible_with=tensorpack --precision=fp16 --fp16_loss_scale=1024 --preset=aws "
            "--throughput_log_freq=5 --config TRAIN.IMAGES_PER_EPOCH=1000 TRAIN.IMAGES_PER_EPOCH=7");
}

TEST(DetectorFrontEnds, TranslateInference) {
  EXPECT_EQ(translation(Original::tensorpack_predict, "--load W --predict a.jpg b.jpg --config MODE_FPN=False"),
            "predict --output=output a.jpg b.jpg --preset=tensorpack --load=W --config MODE_FPN=False");
  EXPECT_EQ(translation(Original::aws_train, "--load W --predict=a.jpg"),
            "predict --output=output a.jpg --preset=aws --load=W");
  EXPECT_EQ(translation(Original::tensorpack_predict, "--load W --evaluate out.json"),
            "eval --save_results=out.json --preset=tensorpack --load=W");
  EXPECT_EQ(translation(Original::tensorpack_train, "--load W --visualize"),
            "visualize --output=output --images=100 --split=DATA.TRAIN --preset=tensorpack --load=W");
  EXPECT_EQ(translation(Original::tensorpack_predict, "--load W --benchmark"),
            "predict --benchmark --preset=tensorpack --load=W");
}

TEST(DetectorFrontEnds, RefuseInOneLine) {
  const auto refuses = [](Original original, const std::string& line, const std::string& message) {
    expect_error([&] { translation(original, line, /*gpus=*/0); }, Fault::config, message);
  };
  refuses(Original::tensorpack_predict, "--load W", "expected one of --visualize, --evaluate, --predict");
  refuses(Original::tensorpack_predict, "--predict a.jpg", "--load is missing");
  refuses(Original::tensorpack_predict, "--load W --output-pb x.pb", "--output-pb=x.pb is not supported");
  refuses(Original::tensorpack_predict, "--load W --evaluate out.txt", "--evaluate: expected a file name that ends in");
  refuses(Original::tensorpack_train, "--load W --visualize --predict a", "exclude each other");
  refuses(Original::tensorpack_train, "--fp16", "unknown flag --fp16");
  refuses(Original::tensorpack_train, "--load W --predict", "--predict");
  refuses(Original::aws_train, "--fp16", "--fp16: not supported on a CPU; leave it out");
  refuses(Original::aws_train, "W.npz", "unexpected argument 'W.npz'");
}

TEST(DetectorFrontEnds, SayThatAProcessUsesOneGpu) {
  const auto notices = [](const std::string& line, int gpus) {
    return mask_rcnn::translated(Original::tensorpack_train, cli::split_words("program " + line), gpus)->notices;
  };
  EXPECT_EQ(notices("--logdir L", 8).size(), 1u);
  EXPECT_TRUE(notices("--logdir L", 1).empty());
  EXPECT_TRUE(notices("--config TRAINER=horovod", 8).empty());
}

TEST(TensorPackLog, HasEpochsProgressAndScalars) {
  std::ostringstream out, notices;
  cli::Log log(out, notices);
  observers::TensorPackLog observer(
      log,
      {.images = 2, .period = 4, .steps = 6, .ends_with_evaluation = true, .tags = {{"total_loss", "total_cost"}}});
  observer.begun({.step = 0});
  for (uint64_t step = 1; step <= 6; ++step) {
    observer.stepping(step);
    observer.stepped({.step = step, .shown = step % 2 == 0, .loss = static_cast<double>(step), .learning_rate = 0.01});
  }
  observer.ended({.step = 6});
  observer.evaluated({.step = 6, .result = {.values = {{"coco_val2017-mAP(bbox)/IoU=0.5:0.95", 0.3823456}}}});
  const std::string stamp = R"(\[\d{4} \d\d:\d\d:\d\d @)", monitor = stamp + R"(monitor\.py:\d+\] )";
  const auto epoch = [&](int number, int step, const std::string& left, const std::string& bars,
                         const std::string& cost) {
    return stamp + R"(base\.py:\d+\] Start Epoch )" + std::to_string(number) + R"( \.\.\.\n)" + bars + stamp +
           R"(base\.py:\d+\] Epoch )" + std::to_string(number) + R"( \(global_step )" + std::to_string(step) +
           R"(\) finished, time:\S+ seconds?\.\n)" + left + monitor + R"(Throughput \(samples/sec\): \S+\n)" + monitor +
           R"(l2_loss: 0\n)" + monitor + R"(learning_rate: 0\.01\n)" + monitor + "loss: " + cost + R"(\n)" + monitor +
           "total_cost: " + cost + R"(\n)";
  };
  const std::string rate = R"(\[00:00<00:00, *\d+\.\d\dit/s\]\n)";
  const std::regex expected(epoch(1, 4, stamp + R"(misc\.py:\d+\] Estimated Time Left: \S+ seconds?\n)",
                                  R"( 50%\|#####     \|2/4)" + rate + R"(100%\|##########\|4/4)" + rate, R"(2\.5)") +
                            epoch(2, 6, "", R"( 50%\|#####     \|2/4)" + rate, R"(5\.5)") + monitor +
                            R"(coco_val2017-mAP\(bbox\)/IoU=0\.5:0\.95: 0\.38235\n)" + stamp +
                            R"(base\.py:\d+\] Training has finished!\n)");
  EXPECT_TRUE(std::regex_match(out.str(), expected)) << out.str();
}

class MaskRcnnFrontEnd : public MaskRcnn {
 protected:
  // Two steps per epoch.
  Words line(const std::string& command, const Words& arguments, const Words& more = {}, const Words& keys = {}) const {
    const Words config = {"--config",
                          "DATA.BASEDIR=" + path("data"),
                          "DATA.TRAIN=['coco_train']",
                          "DATA.VAL=('coco_val',)",
                          "TRAIN.STEPS_PER_EPOCH=2",
                          "TRAIN.EVAL_PERIOD=1",
                          "PREPROC.TRAIN_SHORT_EDGE_SIZE=64",
                          "PREPROC.TEST_SHORT_EDGE_SIZE=64",
                          "PREPROC.MAX_SIZE=96",
                          "TRAINER=horovod"};
    return joined_words(
        joined_words(joined_words(joined_words({command}, arguments), joined_words(config, keys)), kSmallDetector),
        joined_words({"--", "--device=cpu"}, more));
  }
  ProgramResult train(const std::string& run, int steps, const Words& arguments = {}, const Words& keys = {}) const {
    return run_program("dtrain-mask-rcnn",
                       line("tensorpack-train", joined_words({"--logdir", path(run)}, arguments),
                            {"--batch_size=2", "--display_every=1", "--num_batches=" + std::to_string(steps)}, keys));
  }
};

TEST_F(MaskRcnnFrontEnd, TrainsResumesAndEvaluates) {
  const ProgramResult first = train("first", 4);
  ASSERT_EQ(first.code, 0) << first.err;
  for (const char* part :
       {"] Start Epoch 1 ...\n 50%|#####     |1/2[", "] Epoch 2 (global_step 4) finished, time:", "] total_cost: ",
        "] coco_val-mAP(bbox)/IoU=0.5:0.95: ", "] coco_val-mAP(segm)/small: ", "] Model saved to ",
        "] [ThroughputTracker] Over last epoch, ", "] Training has finished!\n"})
    EXPECT_TRUE(contains(first.out, part)) << part << " is missing in\n" << first.out;
  EXPECT_FALSE(contains(first.out, "step 1/")) << first.out;
  EXPECT_TRUE(Json::parse(read_file(path("first/stats.json"))).back().contains("coco_val-mAP(bbox)/IoU=0.5"));
  EXPECT_TRUE(contains(read_file(path("first/log.log")), "] Start Epoch 1 ...\n"));

  // As after a failure, in another folder.
  const ProgramResult second = train("second", 6, {"--load", path("first")}, {"TRAIN.STARTING_EPOCH=3"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(contains(second.out, "] Restoring checkpoint from " + path("first/checkpoints/step-4"))) << second.out;
  EXPECT_TRUE(contains(second.out, "] Start Epoch 3 ...\n") && !contains(second.out, "] Start Epoch 1 "));
  EXPECT_EQ(train("second", 8, {"--load", path("first")}, {"TRAIN.STARTING_EPOCH=3"}).code, 0) << "from its own";
  const ProgramResult none = train("third", 6, {}, {"TRAIN.STARTING_EPOCH=3"});
  EXPECT_EQ(none.code, 5) << none.err;
  EXPECT_TRUE(contains(none.err,
                       "TRAIN.STARTING_EPOCH=3: expected a checkpoint of step 4 or later in --train_dir or "
                       "--load, found none"))
      << none.err;

  const ProgramResult scored = run_program(
      "dtrain-mask-rcnn", line("tensorpack-predict", {"--load", path("first"), "--evaluate", path("out.json")}));
  ASSERT_EQ(scored.code, 0) << scored.err;
  const Words again = {"eval", "--annotations=" + path("data/annotations/instances_val.json"),
                       "--results=" + path("out.json-coco_val"), "--json"};
  const ProgramResult saved = run_program("dtrain-mask-rcnn", again);
  ASSERT_EQ(saved.code, 0) << saved.err;
  const std::regex precision(R"(coco_val-mAP\(bbox\)/IoU=0.5:0.95: (\S+))");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(scored.out, found, precision)) << scored.out;
  EXPECT_NEAR(std::stod(found[1]), Json::parse(saved.out)["stats"][0].get<double>(), 1e-4) << saved.out;
}

}  // namespace
}  // namespace dtrain
