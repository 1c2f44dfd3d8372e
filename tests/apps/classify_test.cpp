// dtrain-classify: prints the model's results; continues after bad images.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/cli/vision.h"
#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/models/onnx/classifier.h"
#include "dtrain/train/checkpoint.h"
#include "dtrain/train/weights.h"
#include "tests/apps/program.h"
#include "tests/data/exif.h"
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
    const data::PreprocessorFactory make = pixels.make(false);
    const Tensor input = context_->empty({1, 32, 32, 3}, make.dtype);
    make()->run(picture(i), {}, {}, input.raw());
    PreparedWeights prepared(store_);
    Tape tape(*context_, prepared);
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

TEST_F(Classify, ReportsABadImageAndContinues) {
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

TEST_F(Classify, ADamagedImageIsNamed) {
  const std::vector<std::byte> bytes = picture(1);
  write_file(image(2), {reinterpret_cast<const char*>(bytes.data()), bytes.size() / 2});
  std::vector<std::byte> odd = with_orientation(bytes, 6);
  odd.insert(odd.end() - 2, 20, std::byte{7});  // costs no pixels
  write_file(image(1), {reinterpret_cast<const char*>(odd.data()), odd.size()});
  std::vector<std::string> arguments = {"--model=resnet20", "--weights=" + weights(), image(1), image(2)};
  const ProgramResult text = run_program(kClassify, arguments);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_FALSE(contains(text.err, image(1))) << text.err;
  EXPECT_TRUE(contains(text.err, "1 of the 2 images read have an EXIF orientation other than 1: used as stored"))
      << text.err;
  EXPECT_TRUE(contains(text.out, "\n  damaged image: Premature end of JPEG file")) << text.out;
  EXPECT_TRUE(contains(text.err, image(2) + ": damaged image: Premature end of JPEG file")) << text.err;
  EXPECT_TRUE(contains(text.err, "1 of 2 images are damaged")) << text.err;
  arguments.push_back("--json");
  const std::string json = run_program(kClassify, arguments).out;
  const size_t second = json.find('\n') + 1;
  EXPECT_FALSE(nlohmann::json::parse(json.substr(0, second)).contains("warning"));
  EXPECT_EQ(nlohmann::json::parse(json.substr(second)).at("warning"), "Premature end of JPEG file");
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

TEST_F(Classify, WeightsOfAnotherModelExitWithFive) {
  for (const char* model : {"lenet", "vgg11"}) {
    const ProgramResult other = run_program(kClassify, {concat("--model=", model), "--weights=" + weights(), image(1)});
    EXPECT_EQ(other.code, 5) << other.err;
    EXPECT_NE(other.err.find(concat("last layer of ", model, ": these are not the weights of this model")),
              std::string::npos)
        << other.err;
  }
}

TEST_F(Classify, NonFiniteResultsExitWithThree) {
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
  EXPECT_EQ(overflow.err, "error: " + image(1) + ": the model's output is not finite\n");
  EXPECT_EQ(overflow.out, "");
}

// Metadata as recorded by dtrain-cnn-benchmarks.
class RecordedRun : public Classify {
 protected:
  RecordedRun() : resnet_(*context_) {
    model_of_run_ = models::make_classifier(
        resnet_, cli::find_model("resnet18", "imagenet"),
        {.classes = 5,
         .image_size = 33,
         .conventions = {.padding = models::PaddingConvention::same, .batch_norm_epsilon = 0.25f}});
    resnet_.allocate(4);
    TrainState state{.step = 7};
    state.identity = {{"model", "resnet18, padding same, batch norm epsilon 0.25"},
                      {"preprocessing", "tf_cnn, ml_perf"},
                      {"image size", "33"}};
    Checkpointer(resnet_, {.train_dir = (directory_ / "run").string(), .asynchronous = false}, {}).save(state);
    recorded_ = (directory_ / "run/checkpoints/step-7/model.safetensors").string();
  }

  std::vector<float> logits_by(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments{"--json", "--logits", image(1)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult run = run_program(kClassify, arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out).at("logits").get<std::vector<float>>();
  }

  ParameterStore resnet_;
  models::Classifier model_of_run_;
  std::string recorded_;
};

TEST_F(RecordedRun, IsClassifiedAsItWasTrained) {
  const std::string copy = (directory_ / "copy.safetensors").string();
  write_file(copy, read_file(recorded_));
  const std::vector<std::string> same{"--model=resnet18", "--image_size=33", "--resnet_padding=same", "--ml_perf",
                                      "--weights=" + copy};
  const auto with = [](std::vector<std::string> flags, const std::string& one) {
    flags.push_back(one);
    return flags;
  };
  const std::vector<float> expected = logits_by(with(same, "--batch_norm_epsilon=0.25"));
  const std::vector<std::string> alone{"--weights=" + recorded_};
  EXPECT_EQ(logits_by(alone), expected);
  EXPECT_NE(logits_by(with(same, "--batch_norm_epsilon=0.5")), expected);
  for (const std::string folder : {"run", "run/checkpoints/step-7"})
    EXPECT_EQ(logits_by({"--weights=" + (directory_ / folder).string()}), expected) << folder;
  EXPECT_EQ(logits_by(with(with(alone, "--batch_norm_epsilon=0.25"), "--ml_perf")), expected);
  const ProgramResult unnamed = run_program(kClassify, {"--weights=" + copy, image(1)});
  EXPECT_EQ(unnamed.code, 1);
  EXPECT_NE(unnamed.err.find("expected --model"), std::string::npos) << unnamed.err;
}

TEST_F(RecordedRun, RefusesWhatContradictsTheRecord) {
  const std::pair<const char*, const char*> cases[] = {
      {"--model=resnet34", "--model=resnet34: "},
      {"--batch_norm_epsilon=0.5", "was trained with 0.25"},
      {"--resnet_padding=symmetric", "was trained with same"},
      {"--bottleneck_stride=3x3", "was trained with 1x1"},
      {"--preprocessing=torchvision", "--preprocessing=torchvision: "},
  };
  for (const auto& [flag, message] : cases) {
    const ProgramResult run = run_program(kClassify, {"--weights=" + recorded_, flag, image(1)});
    EXPECT_EQ(run.code, 1) << run.err;
    EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
  }
}

// Metadata of weights does not depend on their location.
TEST_F(RecordedRun, MovedWeightsAreClassifiedAsTheyWereTrained) {
  const WeightsRecord record = {{"model", "resnet18, padding same, batch norm epsilon 0.25"},
                                {"classes", "5"},
                                {"data name", "imagenet"},
                                {"preprocessing", "tf_cnn, ml_perf"},
                                {"image size", "33"},
                                {"class names", R"(["background","tench","goldfish","shark","ray"])"}};
  const std::string moved = (directory_ / "moved.safetensors").string();
  save_weights(resnet_, moved, 0, record);
  EXPECT_EQ(logits_by({"--weights=" + moved}), logits_by({"--weights=" + recorded_}));
  const std::string text = run_program(kClassify, {"--weights=" + moved, image(1)}).out;
  for (const char* name : {"background (class 0)", "tench (class 1)", "ray (class 4)"})
    EXPECT_NE(text.find(name), std::string::npos) << text;
  const ProgramResult json = run_program(kClassify, {"--weights=" + moved, "--json", "--label=2", image(1)});
  const nlohmann::json row = nlohmann::json::parse(json.out);
  EXPECT_EQ(row["label_name"], "goldfish");
  const std::vector<std::string> names = {"background", "tench", "goldfish", "shark", "ray"};
  for (const auto& guess : row["top"]) EXPECT_EQ(guess["name"], names.at(guess["class"].get<size_t>()));
  const ProgramResult run = run_program(kClassify, {"--weights=" + moved, "--num_classes=6", image(1)});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("--num_classes=6: " + moved + " was trained with 5"), std::string::npos) << run.err;
}

TEST_F(RecordedRun, IsExportedAsItWasTrained) {
  const std::string found = (directory_ / "found.onnx").string(), expected = (directory_ / "expected.onnx").string();
  const ProgramResult run = run_program(kClassify, {"--weights=" + recorded_, "--onnx=" + found});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, found + ": resnet18, padding same, batch norm epsilon 0.25, 5 classes, images of 33 x 33\n");
  const data::Pixels pixels{.ml_perf = true, .size = 33};
  models::export_onnx(resnet_, model_of_run_, cli::normalization_of(pixels), expected);
  EXPECT_EQ(read_file(found), read_file(expected));
}

TEST(Info, ListsTheModels) {
  const ProgramResult run = run_program("dtrain-info", {"--models"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("| `resnet50_v1.5` | imagenet | 224 | 1001 | 25.56 M |"), std::string::npos) << run.out;
  const std::string page = read_file((source_dir() / "docs/models.md").string());
  EXPECT_NE(page.find(run.out), std::string::npos) << "docs/models.md has another table; expected:\n" << run.out;
}

TEST(Info, NamesTheLoadedLibraries) {
  const ProgramResult run = run_program("dtrain-info", {});
  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* part : {"libdnnl.so", "libjpeg.so", "zlib:", "threads:"})
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
  EXPECT_TRUE(run.out.find("oneDNN:       2.") != std::string::npos ||
              run.out.find("oneDNN:       3.") != std::string::npos)
      << run.out;
}

}  // namespace
}  // namespace dtrain
