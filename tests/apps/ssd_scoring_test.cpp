// SSD300's data and evaluation, with an oracle detector instead of the network.
#include <nlohmann/json.hpp>

#include "apps/ssd/data.h"
#include "apps/ssd/model.h"
#include "dtrain/core/profiler.h"
#include "dtrain/distributed/group.h"
#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain {
namespace {

class SsdScoring : public MaskRcnn {};

// Returns the ground truth of each image, in pixels of images stretched to 300x300.
class Knowing final : public detection::Model {
 public:
  explicit Knowing(const data::coco::Annotations& truth) : context_(make_cpu_context()), truth_(truth) {}
  Context& device() override { return *context_; }
  Loss loss(Tape&, const detection::DeviceBatch&) override { throw Error("it is not trained"); }
  models::Detections detect(Tape&, const detection::DeviceBatch& batch) override {
    const int64_t rows = batch.images().dim(0);
    EXPECT_EQ(batch.images().shape(), (Shape{rows, 300, 300, 3}));
    models::Detections found{context_->zeros({rows, 1, 4}), context_->zeros({rows, 1}),
                             context_->zeros({rows, 1}, DType::i32), context_->zeros({rows}, DType::i32)};
    for (int64_t row = 0; row < rows && next_ < truth_.images.size(); ++row, ++next_) {
      const data::coco::AnnotatedImage& image = truth_.images[next_];
      const data::coco::Annotation& object = truth_.of(next_).front();
      const double x = 300.0 / static_cast<double>(image.width), y = 300.0 / static_cast<double>(image.height);
      const double corners[] = {object.box.x * x, object.box.y * y, (object.box.x + object.box.width) * x,
                                (object.box.y + object.box.height) * y};
      for (int i = 0; i < 4; ++i) found.boxes.data<float>()[4 * row + i] = static_cast<float>(corners[i]);
      found.scores.data<float>()[row] = 0.9f;
      found.classes.data<int32_t>()[row] = static_cast<int32_t>(object.category) + 1;
      found.counts.data<int32_t>()[row] = 1;
    }
    return found;
  }

 private:
  std::unique_ptr<Context> context_;
  const data::coco::Annotations& truth_;
  size_t next_ = 0;
};

TEST_F(SsdScoring, OracleDetectorScoresOne) {
  const detection::ValidationSplit split = ssd::open_validation(path("data"), {});
  EXPECT_EQ(split.images->size(), 6u);
  const auto group = make_single_group();
  for (const bool waits : {true, false}) {
    Knowing model(*split.truth);
    detection::DetectionTask task(
        model, *group, {.validation = {split}, .evaluation_batch = 4, .waits_for_scores = waits, .score = ssd::score});
    const Evaluation evaluation = task.evaluate({}).get();
    EXPECT_EQ(evaluation.examples, 6u);
    EXPECT_DOUBLE_EQ(evaluation.value("top_1_accuracy"), 1);
    EXPECT_DOUBLE_EQ(evaluation.value("top_5_accuracy"), 0);
    EXPECT_DOUBLE_EQ(evaluation.value("COCO/AP"), 1);
    EXPECT_DOUBLE_EQ(evaluation.value("COCO/ARmax1"), 1);
    EXPECT_DOUBLE_EQ(evaluation.value("COCO/APl"), -1);  // no object is that large
    EXPECT_EQ(evaluation.values.size(), 14u);
  }
}

TEST_F(SsdScoring, TrainingSkipsImagesWithoutObjects) {
  const std::string file = path("data/annotations/instances_train.json");
  Json truth = Json::parse(read_file(file));
  truth["annotations"][0]["bbox"] = {4, 30, 0, 20};  // of no area
  truth["annotations"][1]["iscrowd"] = 1;
  write_file(file, truth.dump());
  EXPECT_EQ(ssd::open_training(path("data"), true, {})->size(), 4u);
  truth["annotations"] = Json::array();
  write_file(file, truth.dump());
  expect_error([&] { ssd::open_training(path("data"), true, {}); }, Fault::data,
               "none of the 6 training images has an object to train on");
}

TEST_F(SsdScoring, MultiplyAddsOfConvolutions) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  ssd::Model model(store, nullptr);
  store.allocate(0, {.gradients = false});
  const detection::DeviceBatch batch = model.synthetic_batch(1, 0);
  double flops = 0;
  Profiler profiler(*context);
  profiler.begin_step("ssd300");
  Tape tape(*context, Mode::eval);
  model.detect(tape, batch);
  profiler.end_step();
  for (const WorkRecord& record : profiler.take())
    if (record.level == WorkLevel::op && record.name.find("conv") != std::string::npos) flops += record.flops;
  EXPECT_DOUBLE_EQ(flops, 2.0 * static_cast<double>(model.multiply_adds()));
}

TEST_F(SsdScoring, ScheduleMatchesTheReference) {
  const Schedule schedule = ssd::schedule(64);
  EXPECT_EQ(schedule.warmup_epochs, 9241);  // int(118287 / 64 * 5)
  EXPECT_DOUBLE_EQ(schedule.at(9241), 2e-3);
  EXPECT_NEAR(schedule.at(4620), 2e-3 * 4620 / 9241, 1e-12);
  EXPECT_DOUBLE_EQ(schedule.at(79'999), 2e-3);
  EXPECT_DOUBLE_EQ(schedule.at(80'001), 2e-4);
  EXPECT_DOUBLE_EQ(schedule.at(100'001), 2e-5);
  EXPECT_NO_THROW(ssd::schedule(1).validate());
}

}  // namespace
}  // namespace dtrain
