// dtrain-classify calibrate and --precision: from records to predictions, and invalid calibrations.
#include <nlohmann/json.hpp>

#include "apps/cli/vision.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/train/weights.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// A model with random weights, whose int8 logits must be close to the fp32 logits.
class Calibrate : public testing::Test {
 protected:
  Calibrate() : context_(make_cpu_context({.threads = 1})) {
    write_weights(weights(), 3);
    write_weights(path("others"), 4);
    const ProgramResult made = run_program(
        "dtrain-data", {"synthesize", "--output=" + path("data"), "--train=40", "--validation=20", "--classes=7",
                        "--first_label=0", "--shards=2", "--validation_shards=1", "--image_size=40"});
    EXPECT_EQ(made.code, 0) << made.err;
    data::Image picture(40, 32);
    for (size_t i = 0; i < 3 * 40 * 32; ++i) picture.pixels[i] = static_cast<uint8_t>(i * 7 & 255);
    const std::vector<std::byte> bytes = data::encode_jpeg(picture.view());
    write_file(path("image.jpg"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  void write_weights(const std::string& file, uint64_t seed) const {
    ParameterStore store(*context_);
    models::make_classifier(store, cli::find_model("resnet20", "cifar10"), {.classes = 7});
    store.allocate(seed);
    save_weights(store, file);
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string weights() const { return path("weights.safetensors"); }

  ProgramResult calibrate() const {
    return run_program("dtrain-classify",
                       {"calibrate", "--model=resnet20", "--weights=" + weights(), "--image_size=32",
                        "--data_dir=" + path("data"), "--calibration=" + path("c.json"), "--num_images=30"});
  }
  ProgramResult classify(const std::string& calibration, const std::string& file_of_weights,
                         const std::string& model = "resnet20", const std::string& precision = "int8") const {
    std::vector<std::string> arguments{
        "--json",         "--logits", "--model=" + model, "--weights=" + file_of_weights, "--precision=" + precision,
        path("image.jpg")};
    if (!calibration.empty()) arguments.push_back("--calibration=" + calibration);
    return run_program("dtrain-classify", arguments);
  }
  std::vector<double> logits(const ProgramResult& run) const {
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out).at("logits").get<std::vector<double>>();
  }

  TempDirectory directory_;
  std::unique_ptr<Context> context_;
};

double off_by(const std::vector<double>& found, const std::vector<double>& expected) {
  double squares = 0, of = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    squares += (found[i] - expected[i]) * (found[i] - expected[i]);
    of += expected[i] * expected[i];
  }
  return std::sqrt(squares / of);
}

TEST_F(Calibrate, Int8PredictionsAreCloseToFp32) {
  const ProgramResult made = calibrate();
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find("22 layers in int8"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("int8: top-1"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("of 20 images"), std::string::npos) << made.out;
  const std::vector<double> expected = logits(classify("", weights(), "resnet20", "fp32"));
  const std::vector<double> bytes = logits(classify(path("c.json"), weights()));
  EXPECT_LT(off_by(bytes, expected), 0.06);
  EXPECT_NE(bytes, expected);
  const std::vector<double> halves = logits(classify("", weights(), "resnet20", "bf16"));
  EXPECT_LT(off_by(halves, expected), 0.03);
  EXPECT_NE(halves, expected);
  const std::string first = read_file(path("c.json"));
  EXPECT_EQ(calibrate().code, 0);
  EXPECT_EQ(read_file(path("c.json")), first);
}

TEST_F(Calibrate, RefusesInvalidCalibrations) {
  ASSERT_EQ(calibrate().code, 0);
  const auto expect = [&](const ProgramResult& run, int code, const std::string& line) {
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_NE(run.err.find(line), std::string::npos) << run.err;
  };
  expect(classify(path("c.json"), path("others")), 1, "a calibration of other weights");
  expect(classify(path("c.json"), weights(), "resnet32"), 5, "does not fit");
  expect(classify(path("none"), weights()), 2, "No such file");
  expect(classify("", weights()), 1, "expected both or neither");
  expect(classify(path("c.json"), weights(), "resnet20", "fp32"), 1, "expected both or neither");
  expect(classify(path("image.jpg"), weights()), 2, "image.jpg");
  std::string text = read_file(path("c.json"));
  write_file(path("cut"), text.substr(0, text.size() / 2));
  expect(classify(path("cut"), weights()), 2, "cut");
  const size_t digit = text.find("\"scale\": 0.") + 12;
  text[digit] = text[digit] == '9' ? '8' : '9';
  write_file(path("changed"), text);
  expect(classify(path("changed"), weights()), 2, "checksum");
  write_file(path("other"), "{\"format\": \"mine\"}");
  expect(classify(path("other"), weights()), 2, "not a calibration");
}

}  // namespace
}  // namespace dtrain
