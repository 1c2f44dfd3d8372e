#include "dtrain/train/metrics.h"

#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "dtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// Expected values by numpy: s = 64 / t; s.std() / sqrt(n); 1.4826 * median(|s - median(s)|).
TEST(Throughput, StatisticsOfFourSteps) {
  Throughput throughput(64);
  for (double seconds : {0.5, 0.4, 0.8, 0.32}) throughput.add(seconds);
  EXPECT_DOUBLE_EQ(throughput.speed(), 64 / 0.505);
  // speeds 128, 160, 80, 200: mean 142, squared deviations 196 + 324 + 3844 + 3364 = 7728
  EXPECT_DOUBLE_EQ(throughput.uncertainty(), std::sqrt(7728.0 / 4) / 2);
  // median 144; deviations 16, 16, 64, 56
  EXPECT_DOUBLE_EQ(throughput.jitter(), 1.4826 * 36);
}

TEST(Throughput, OddNumberOfSteps) {
  Throughput throughput(10);
  for (double seconds : {1.0, 0.5, 0.1}) throughput.add(seconds);
  EXPECT_DOUBLE_EQ(throughput.jitter(), 1.4826 * 10);  // speeds 10, 20, 100; deviations 10, 0, 80
}

TEST(Throughput, MovingAverageWeighsByAge) {
  Throughput throughput(8, 0.25);
  for (double seconds : {4.0, 2.0, 1.0}) throughput.add(seconds);
  const double weights = 0.75 * 0.75 + 0.75 + 1;
  EXPECT_DOUBLE_EQ(throughput.speed(), 8 * weights / (4 * 0.75 * 0.75 + 2 * 0.75 + 1));
  EXPECT_THROW(Throughput(8, 1.5), Error);
}

TEST(Throughput, NothingTimed) {
  const Throughput throughput(8);
  EXPECT_EQ(throughput.speed(), 0);
  EXPECT_EQ(throughput.uncertainty(), 0);
  EXPECT_EQ(throughput.jitter(), 0);
}

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({8, 1, 2, 4}), 3);
  expect_error([] { median({}); }, Fault::config, "median: there are no values");
}

class MetricsFileTest : public testing::Test {
 protected:
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  TempDirectory directory_;
  std::string path_ = directory_ / "metrics.jsonl";
};

TEST_F(MetricsFileTest, OneLinePerStep) {
  MetricsFile file(path_, 0);
  file.append(1, {{"loss", 2.5}, {"learning_rate", 0.125}});
  file.append(10, {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(content(), "{\"step\":1,\"loss\":2.5,\"learning_rate\":0.125}\n{\"step\":10,\"loss\":null}\n");
}

TEST_F(MetricsFileTest, ResumeCutsBackToTheStep) {
  write("{\"step\":1}\n{\"step\":10}\n{\"step\":20}\n{\"step\":3");
  MetricsFile(path_, 10).append(11, {});
  EXPECT_EQ(content(), "{\"step\":1}\n{\"step\":10}\n{\"step\":11}\n");
}

TEST_F(MetricsFileTest, CutLastLineIsDropped) {
  write("{\"step\":1}\n{\"step\":10");  // without line terminator the number may be truncated
  MetricsFile(path_, 50).append(51, {});
  EXPECT_EQ(content(), "{\"step\":1}\n{\"step\":51}\n");
}

TEST_F(MetricsFileTest, FreshRunStartsAfresh) {
  write("{\"step\":1}\n");
  MetricsFile(path_, 0).append(2, {});
  EXPECT_EQ(content(), "{\"step\":2}\n");
}

TEST_F(MetricsFileTest, MalformedLineIsRefusedAndTheFileUntouched) {
  const std::string nested = "{\"step\":2,\"loss\":" + std::string(100, '[') + std::string(100, ']') + "}";
  for (const std::string& line : {std::string("hello"), nested}) {
    const std::string text = "{\"step\":1}\n" + line + "\n{\"step\":2}\n";
    write(text);
    expect_error([&] { MetricsFile(path_, 5); }, Fault::data, "line 2: not a JSON object with a \"step\"");
    EXPECT_EQ(content(), text);
  }
}

TEST_F(MetricsFileTest, ALineOf64KiBPassesAndALongerOneDoesNot) {
  const std::string line = "{\"step\":1" + std::string((size_t{64} << 10) - 10, ' ') + "}";
  write(line + "\n");
  MetricsFile(path_, 1).append(2, {});
  EXPECT_EQ(content(), line + "\n{\"step\":2}\n");
  for (const char* end : {"\n", ""}) {
    write("{\"step\":0}\n" + line + " " + end);
    expect_error([&] { MetricsFile(path_, 1); }, Fault::data, "line 2: not a JSON object with a \"step\"");
  }
}

TEST_F(MetricsFileTest, AFullFifoThatNobodyReadsIsTold) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  MetricsFile file(path_, 0);
  const MetricsFile::Fields fields(100, {"loss", 2.5});
  expect_error(
      [&] {
        for (uint64_t step = 1; step < 10'000; ++step) file.append(step, fields);
      },
      Fault::resource, path_ + ": the FIFO is full and has no reader");
}

TEST_F(MetricsFileTest, DirectoryIsRefused) {
  const std::string directory = directory_.path();
  expect_error([&] { MetricsFile(directory, 0); }, Fault::config, "metrics file " + directory + ": is a directory");
}

TEST_F(MetricsFileTest, UnwritablePathIsNamed) {
  const std::string path = directory_ / "none/metrics.jsonl";
  expect_error([&] { MetricsFile(path, 0); }, Fault::resource, path);
}

}  // namespace
}  // namespace dtrain
