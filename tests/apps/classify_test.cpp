// dtrain-classify: what it prints equals what the model computes; bad images do not stop it.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/cli/vision.h"
#include "data/jpeg.h"
#include "libdtrain/train/weights.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr char kClassify[] = "dtrain-classify";

std::vector<std::byte> picture(int seed) {
  data::Image image(40, 32);
  for (size_t i = 0; i < 3 * 40 * 32; ++i) image.pixels[i] = static_cast<uint8_t>((i * 7 + i / 120 * 31 * seed) & 255);
  return data::encode_jpeg(image.view());
}

class Classify : public testing::Test {
 protected:
  Classify()
      : context_(make_cpu_context({.threads = 1})),
        store_(*context_),
        model_(
            models::make_classifier(store_, cli::find_model("resnet20", "cifar10"), {.classes = 7, .image_size = 0})) {
    store_.allocate(3);
    save_weights(store_, weights());
    for (int i = 1; i <= 2; ++i) {
      const std::vector<std::byte> bytes = picture(i);
      write_file(image(i), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    write_file(image(3), "no image");
  }

  std::string weights() const { return (directory_ / "weights.safetensors").string(); }
  std::string image(int i) const { return (directory_ / ("image" + std::to_string(i) + ".jpg")).string(); }

  std::vector<float> logits(int i, const data::Pixels& pixels) {
    const data::MakePreprocess make = pixels.make(false);
    const Tensor input = context_->empty({1, 32, 32, 3}, make.dtype);
    make()(picture(i), {}, {}, input.raw());
    Tape tape(*context_, Mode::eval);
    const Tensor images = normalize_pixels(*context_, input, cli::normalization_of(pixels));
    const Var result = model_.forward(tape, tape.constant(images));
    return {result.value.data<float>(), result.value.data<float>() + 7};
  }

  TempDirectory directory_;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  models::Classifier model_;
};

TEST_F(Classify, PrintsWhatTheModelComputes) {
  for (const char* preprocessing : {"tf_cnn", "torchvision"}) {
    const ProgramResult run =
        run_program(kClassify, {"--model", "resnet20", "--weights", weights(), "--preprocessing", preprocessing,
                                "--top=3", "--json", "--logits", image(1), image(2)});
    ASSERT_EQ(run.code, 0) << run.err;
    data::Pixels pixels;
    pixels.preprocessing = preprocessing;
    pixels.dataset = "cifar10";
    pixels.size = 32;
    std::istringstream lines(run.out);
    std::string line;
    for (int i = 1; i <= 2; ++i) {
      ASSERT_TRUE(std::getline(lines, line));
      const nlohmann::json row = nlohmann::json::parse(line);
      EXPECT_EQ(row["file"], image(i));
      const std::vector<float> expected = logits(i, pixels);
      EXPECT_EQ(row["logits"].get<std::vector<float>>(), expected) << preprocessing;
      double sum = 0;
      for (float logit : expected) sum += std::exp(logit);
      ASSERT_EQ(row["top"].size(), 3u);
      double last = 1;
      for (const auto& entry : row["top"]) {
        const double probability = entry["probability"];
        EXPECT_NEAR(probability, std::exp(expected[entry["class"].get<size_t>()]) / sum, 1e-6);
        EXPECT_LE(probability, last);
        last = probability;
      }
    }
    EXPECT_FALSE(std::getline(lines, line));
  }
}

TEST_F(Classify, ABadImageIsReportedAndTheOthersAreDone) {
  const std::vector<std::string> flags = {"--model=resnet20", "--weights=" + weights()};
  std::vector<std::string> arguments = flags;
  for (const std::string& file : {image(3), image(1), image(9)}) arguments.push_back(file);
  const ProgramResult text = run_program(kClassify, arguments);
  EXPECT_EQ(text.code, 2);
  EXPECT_EQ(text.out.find(image(1) + "\n  "), 0u) << text.out;
  EXPECT_NE(text.err.find("error: " + image(3)), std::string::npos) << text.err;
  EXPECT_NE(text.err.find(image(9)), std::string::npos) << text.err;

  arguments.push_back("--json");
  const ProgramResult json = run_program(kClassify, arguments);
  EXPECT_EQ(json.code, 2);
  std::istringstream lines(json.out);
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].contains("error"));
  EXPECT_EQ(rows[1]["top"].size(), 5u);
  EXPECT_TRUE(rows[2].contains("error"));
}

TEST_F(Classify, UsageAndWeightsThatDoNotFit) {
  EXPECT_EQ(run_program(kClassify, {image(1)}).code, 1);
  EXPECT_EQ(run_program(kClassify, {"--model=resnet21", "--weights=" + weights(), image(1)}).code, 1);
  const ProgramResult other = run_program(kClassify, {"--model=resnet50", "--weights=" + weights(), image(1)});
  EXPECT_EQ(other.code, 5);
  EXPECT_NE(other.err.find("does not fit resnet50"), std::string::npos) << other.err;
  EXPECT_EQ(run_program(kClassify, {"--model=resnet20", "--weights=" + image(3), image(1)}).code, 5);
  EXPECT_EQ(run_program(kClassify, {"--model=resnet20", "--num_classes=9", "--weights=" + weights(), image(1)}).code,
            5);
}

TEST_F(Classify, WeightsOfAnotherModelEndWithFive) {
  for (const char* model : {"lenet", "vgg11"}) {
    const ProgramResult other = run_program(kClassify, {concat("--model=", model), "--weights=" + weights(), image(1)});
    EXPECT_EQ(other.code, 5) << other.err;
    EXPECT_NE(other.err.find(concat("the classifier of ", model, ": these are not the weights of this model")),
              std::string::npos)
        << other.err;
  }
}

TEST_F(Classify, WhatIsNotFiniteEndsWithThree) {
  const Parameter& first = store_.parameters().front();
  const auto classify_with = [&](float value) {
    const std::vector<float> values(static_cast<size_t>(first.shape.count()), value);
    context_->upload(values.data(), first.value);
    save_weights(store_, weights());
    return run_program(kClassify, {"--model=resnet20", "--weights=" + weights(), image(1)});
  };
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const ProgramResult weights_result = classify_with(value);
    EXPECT_EQ(weights_result.code, 3);
    EXPECT_NE(weights_result.err.find(concat("element 0 of ", first.name, " is not finite")), std::string::npos)
        << weights_result.err;
  }
  const ProgramResult overflow = classify_with(3e38f);
  EXPECT_EQ(overflow.code, 3);
  EXPECT_EQ(overflow.err, "error: " + image(1) + ": the model makes numbers of it that are not finite\n");
  EXPECT_EQ(overflow.out, "");
}

TEST(Info, NamesTheLoadedLibraries) {
  const ProgramResult run = run_program("dtrain-info", {});
  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* part : {"oneDNN:       2.", "libdnnl.so", "libjpeg.so", "zlib:", "threads:"})
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
}

}  // namespace
}  // namespace dtrain
