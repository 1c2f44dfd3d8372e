// Mask head in chunks, of which empty ones are skipped by a captured CUDA graph: with a varying number of positives,
// results are bit-identical to steps that skip nothing, also across a resume.
#include <array>

#include "dtrain/models/detection/detector.h"
#include "tests/models/drawn_scene.h"

namespace dtrain::models {
namespace {

// Objects of the two images per step. Each is at least one positive; the capacity is eight positives in four chunks.
constexpr std::array<std::array<int32_t, 2>, 5> kObjects = {{{2, 3}, {0, 0}, {1, 0}, {2, 1}, {0, 3}}};
// Steps after the eager warm-up; the resumed training also captures its last step.
constexpr uint64_t kSteps = 8, kSaved = 4;

struct Checkpoint {
  uint64_t steps;
  std::vector<float> values, velocity;
  StepState state;
};

// Training whose step `i` uses kObjects[i % 5].
class Training {
 public:
  Training(Context& context, bool cuda_graph, const Checkpoint* from = nullptr)
      : context_(context),
        store_(context),
        detector_(store_, tiny_detector()),
        scene_(context, /*first=*/1),
        canvas_(detector_.canvas(context, kSceneSide, kSceneSide)) {
    store_.allocate(3, {.image_channels = context.is_cpu() ? 3 : 4});
    freeze(store_, tiny_detector());
    optimizer_.emplace(store_, OptimizerOptions{.update = {.rule = UpdateRule::momentum, .momentum = 0.9f}});
    trainer_.emplace(store_, *optimizer_, Schedule{.base = 0.01}, TrainerOptions{.seed = 9, .cuda_graph = cuda_graph});
    if (!from) return;
    context.upload(from->values.data(), store_.values());
    context.upload(from->velocity.data(), store_.optimizer_state(0));
    store_.refresh_compute();
    trainer_->resume(from->steps, from->state);
  }

  // Removes the masks of all objects.
  void forget_masks() { scene_.truth.masks.begins = context_.zeros(scene_.truth.masks.begins.shape(), DType::i32); }
  // Mask losses of the steps before `end`.
  std::vector<double> train(uint64_t end) {
    std::vector<double> losses;
    while (trainer_->steps_done() < end) {
      const auto& objects = kObjects[trainer_->steps_done() % kObjects.size()];
      context_.copy(to_device<int32_t>(context_, {2}, {objects[0], objects[1]}), scene_.truth.counts);
      losses.push_back(trainer_->step([&](Tape& tape, int) { return loss(tape); }).metric("mask_loss"));
    }
    return losses;
  }
  Checkpoint checkpoint() {
    return {trainer_->steps_done(), values_of<float>(context_, store_.values()),
            values_of<float>(context_, store_.optimizer_state(0)), trainer_->step_state()};
  }

 private:
  Loss loss(Tape& tape) {
    const Tensor pixels = normalize_pixels(context_, scene_.images, {.channels = store_.image_channels()});
    return detector_.loss(tape, canvas_, tape.constant(pixels), scene_.truth);
  }

  Context& context_;
  ParameterStore store_;
  Detector detector_;
  DrawnScene scene_;
  Canvas canvas_;
  std::optional<Optimizer> optimizer_;
  std::optional<Trainer> trainer_;
};

void expect_equal(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_TRUE(a.values == b.values) << "parameters differ";
  EXPECT_TRUE(a.velocity == b.velocity) << "the optimiser's state differs";
}

// The first, eager steps of each training skip nothing.
TEST(DetectorPositives, VaryBetweenStepsAndAcrossResume) {
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    Training whole(*context, true), eager(*context, false);
    std::vector<double> losses = whole.train(kSaved);
    const Checkpoint saved = whole.checkpoint();
    const std::vector<double> later = whole.train(kSteps);
    losses.insert(losses.end(), later.begin(), later.end());
    EXPECT_TRUE(context->notices().empty()) << context->notices().front();
    for (size_t step = 0; step < losses.size(); ++step)
      EXPECT_EQ(losses[step] == 0, step % kObjects.size() == 1) << "step " << step << ": " << losses[step];
    EXPECT_EQ(eager.train(kSteps), losses);
    expect_equal(eager.checkpoint(), whole.checkpoint());
    Training second(*context, true, &saved);
    EXPECT_EQ(second.train(kSteps), later);
    expect_equal(second.checkpoint(), whole.checkpoint());
  }
}

TEST(DetectorPositives, WithoutMaskAreIgnoredInMaskLoss) {
  for (const auto& context : devices()) {
    Training seen(*context, false), blind(*context, false);
    blind.forget_masks();
    EXPECT_GT(seen.train(1).front(), 0);
    EXPECT_EQ(blind.train(1).front(), 0);
  }
}

}  // namespace
}  // namespace dtrain::models
