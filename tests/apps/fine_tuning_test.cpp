// Fine-tuning: weights for other classes, frozen parts and the learning rate of the head, in both programs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "dtrain/io/safetensors.h"
#include "tests/apps/cnn_benchmarks_fixture.h"
#include "tests/apps/mask_rcnn_fixture.h"

namespace dtrain {
namespace {

using Tensors = std::map<std::string, std::string>;

Tensors tensors_of(const std::string& path) {
  const SafetensorsFile file(path, Fault::checkpoint);
  Tensors tensors;
  for (const SafetensorsEntry& entry : file.entries())
    if (entry.dtype == "F32") tensors[entry.name] = file.read_bytes(entry);
  return tensors;
}

std::string weights_at(const std::string& run, int step) {
  return run + "/checkpoints/step-" + std::to_string(step) + "/model.safetensors";
}

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class FineTuning : public CnnBenchmarks {
 protected:
  // Weight decay and momentum, which would move frozen parameters, too.
  ProgramResult run(const std::string& train_dir, int steps, const Arguments& more) const {
    return train(synthetic() +
                 Arguments{"--device=cpu", "--num_warmup_batches=0", "--num_classes=5", "--tf_random_seed=1",
                           "--optimizer=momentum", "--weight_decay=0.1", "--init_learning_rate=0.1",
                           "--num_batches=" + std::to_string(steps), "--train_dir=" + path(train_dir)} +
                 more);
  }
  ProgramResult trained(const std::string& train_dir, int steps, const Arguments& more = {}) const {
    ProgramResult result = run(train_dir, steps, more);
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }
  Tensors at(const std::string& train_dir, int step) const { return tensors_of(weights_at(path(train_dir), step)); }
};

bool is_in(const std::string& name, const std::vector<const char*>& parts) {
  return std::ranges::any_of(parts, [&](const char* part) { return name.starts_with(part); });
}

TEST_F(FineTuning, FrozenPartsStay) {
  trained("base", 1);
  const Tensors before = at("base", 1);
  const ProgramResult tuned =
      trained("tuned", 2, {"--weights=" + weights_at(path("base"), 1), "--freeze=stem,layer1,layer2.0"});
  EXPECT_TRUE(contains(tuned.err, "note: --freeze=stem,layer1,layer2.0: ")) << tuned.err;
  trained("tuned", 4, {"--weights=" + weights_at(path("base"), 1), "--freeze=stem,layer1,layer2.0"});  // resumes
  int frozen = 0;
  for (const int step : {2, 4})
    for (const auto& [name, value] : at("tuned", step)) {
      const bool stays = is_in(name, {"conv1.", "bn1.", "layer1.", "layer2.0."});
      EXPECT_EQ(value == before.at(name), stays) << name;
      frozen += stays;
    }
  EXPECT_GT(frozen, 2 * 20);  // the running statistics, too
  trained("straight", 4, {"--weights=" + weights_at(path("base"), 1), "--freeze=stem,layer1,layer2.0"});
  EXPECT_EQ(at("straight", 4), at("tuned", 4));
  const Json state = Json::parse(read_file(path("tuned") + "/checkpoints/step-4/state.json"));
  EXPECT_EQ(state["settings"]["frozen parts"], "stem,layer1,layer2.0");
  EXPECT_TRUE(contains(run("tuned", 5, {"--freeze=stem"}).err, "frozen parts"));  // the change is announced
}

TEST_F(FineTuning, UnknownPartsAreRefused) {
  const ProgramResult unknown = run("x", 1, {"--freeze=stem,layer9"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(contains(unknown.err,
                       "--freeze: the model has no part 'layer9'; expected stem, conv1, bn1, layer1, layer2, "
                       "layer3, fc, or a longer path such as layer1.0"))
      << unknown.err;
  const ProgramResult all = run("x", 1, {"--freeze=stem,layer1,layer2,layer3,fc"});
  EXPECT_EQ(all.code, 1);
  EXPECT_TRUE(contains(all.err, "all parameters of the model are frozen")) << all.err;
  EXPECT_EQ(run("x", 1, {"--head_learning_rate_factor=-1"}).code, 1);
}

TEST_F(FineTuning, OtherClassesKeepTheBackbone) {
  trained("base", 1);
  const ProgramResult tuned =
      trained("tuned", 1, {"--num_classes=7", "--weights=" + weights_at(path("base"), 1), "--init_learning_rate=0"});
  EXPECT_TRUE(contains(tuned.err,
                       "2 tensors keep their initial values: fc.weight (file [5, 64], model [7, 64]), "
                       "fc.bias (file [5], model [7])"))
      << tuned.err;
  const Tensors before = at("base", 1), after = at("tuned", 1);
  EXPECT_EQ(after.at("layer3.2.conv2.weight"), before.at("layer3.2.conv2.weight"));
  EXPECT_EQ(after.at("fc.bias").size(), 7 * sizeof(float));
  EXPECT_FALSE(contains(trained("same", 1, {"--weights=" + weights_at(path("base"), 1)}).err, "initial values"));
}

// The first step of SGD: a factor of 8, a power of two, multiplies the difference exactly but for the rounding of the
// sum.
TEST_F(FineTuning, HeadHasItsLearningRate) {
  const Arguments sgd = {"--optimizer=sgd", "--weight_decay=0", "--init_learning_rate=0.125"};
  trained("zero", 1, sgd + Arguments{"--init_learning_rate=0"});
  trained("one", 1, sgd);
  trained("eight", 1, sgd + Arguments{"--head_learning_rate_factor=8"});
  const Tensors zero = at("zero", 1), one = at("one", 1), eight = at("eight", 1);
  for (const auto& [name, value] : one) {
    if (!name.starts_with("fc.")) {
      EXPECT_EQ(eight.at(name), value) << name;
      continue;
    }
    const std::vector<float> start = floats_of(zero.at(name)), plain = floats_of(value),
                             fast = floats_of(eight.at(name));
    EXPECT_NE(plain, start);
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(fast[i] - start[i], 8 * (plain[i] - start[i]), 1e-5f * (1 + std::abs(start[i]))) << name;
  }
  const Json state = Json::parse(read_file(path("eight") + "/checkpoints/step-1/state.json"));
  EXPECT_EQ(state["settings"]["head learning rate factor"], "8");
}

class DetectorFineTuning : public MaskRcnn {
 protected:
  ProgramResult trained(const std::string& run, int steps, const Words& flags, const Words& keys = {}) const {
    Words words = joined_words(train_words(run, steps), keys);
    words.insert(words.begin() + 1, flags.begin(), flags.end());
    ProgramResult result = run_program("dtrain-mask-rcnn", words);
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }
  Tensors at(const std::string& run, int step) const { return tensors_of(weights(run, step)); }
};

TEST_F(DetectorFineTuning, FrozenPartsAreThoseOfFreezeAt) {
  trained("flag", 2, {"--freeze=stem,layer1"});
  trained("key", 2, {}, {"BACKBONE.FREEZE_AT=2"});
  EXPECT_EQ(at("flag", 2), at("key", 2));
  trained("none", 2, {});
  EXPECT_NE(at("none", 2).at("backbone.body.conv1.weight"), at("flag", 2).at("backbone.body.conv1.weight"));
  const Json state = Json::parse(read_file(path("flag") + "/checkpoints/step-2/state.json"));
  EXPECT_EQ(state["settings"]["frozen parts"], "stem,layer1");
  Words words = train_words("x", 2);
  words.insert(words.begin() + 1, "--freeze=body");
  const ProgramResult unknown = run_program("dtrain-mask-rcnn", words);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(contains(unknown.err,
                       "no part 'body'; expected stem, conv1, bn1, layer1, layer2, layer3, layer4, backbone, "
                       "rpn, roi_heads"))
      << unknown.err;
}

TEST_F(DetectorFineTuning, HeadHasItsLearningRate) {
  trained("base", 2, {});
  trained("still", 2, {"--load=" + weights("base", 2), "--head_learning_rate_factor=0"});
  const Tensors before = at("base", 2), after = at("still", 2);
  for (const auto& [name, value] : after) {
    if (name.find(".box_predictor.") == name.npos && name.find(".mask_predictor.") == name.npos) continue;
    EXPECT_EQ(value, before.at(name)) << name;
  }
  EXPECT_NE(after.at("rpn.head.cls_logits.weight"), before.at("rpn.head.cls_logits.weight"));
}

TEST_F(DetectorFineTuning, NamesTensorsOfOtherClasses) {
  trained("base", 2, {});
  const ProgramResult tuned = trained("tuned", 2, {"--load=" + weights("base", 2)}, {"DATA.CLASS_NAMES=['red']"});
  EXPECT_TRUE(contains(tuned.err + tuned.out,
                       "tensors keep their initial values: roi_heads.box_predictor.cls_score.weight "
                       "(file [3, 32], model [2, 32])"))
      << tuned.err << tuned.out;
}

}  // namespace
}  // namespace dtrain
