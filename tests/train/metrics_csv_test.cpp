// Metrics file as CSV.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "dtrain/core/error.h"
#include "dtrain/train/metrics.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class CsvMetrics : public testing::Test {
 protected:
  std::string content() const { return read_file(path_); }

  TempDirectory directory_;
  std::string path_ = directory_ / "metrics.csv";
};

TEST_F(CsvMetrics, OneHeaderAndOneLinePerStep) {
  MetricsFile file(path_, 0);
  file.append(1, {{"loss", 2.5}, {"learning_rate", 0.125}});
  file.append(10, {{"learning_rate", 0.1}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  file.append(20, {{"loss", 3}});
  EXPECT_EQ(content(), "step,loss,learning_rate\n1,2.5,0.125\n10,,0.1\n20,3.0,\n");
}

TEST_F(CsvMetrics, AFigureThatComesUpLaterMakesAColumn) {
  MetricsFile file(path_, 0);
  file.append(1, {{"loss", 2.5}});
  file.append(2, {{"loss", 1.5}});
  file.append(2, {{"eval_mAP(box, \"small\")", 0.25}, {"eval_seconds", 2}});
  file.append(3, {{"loss", 0.5}});
  EXPECT_EQ(content(),
            "step,loss,\"eval_mAP(box, \"\"small\"\")\",eval_seconds\n1,2.5,,\n2,1.5,,\n2,,0.25,2.0\n3,0.5,,\n");
  MetricsFile(path_, 3).append(4, {{"eval_mAP(box, \"small\")", 0.5}});
  EXPECT_TRUE(content().ends_with("3,0.5,,\n4,,0.5,\n")) << content();
}

TEST_F(CsvMetrics, ResumeCutsBackToTheStepUnderTheSameHeader) {
  write_file(path_, "step,loss\n1,5.0\n10,4.0\n20,3.0\n3");
  MetricsFile(path_, 10).append(11, {{"loss", 2}});
  EXPECT_EQ(content(), "step,loss\n1,5.0\n10,4.0\n11,2.0\n");
  MetricsFile(path_, 0).append(1, {{"other", 2}});
  EXPECT_EQ(content(), "step,other\n1,2.0\n") << "a fresh run starts afresh";
  for (const std::string cut : {"", "st", "step,lo"}) {
    write_file(path_, cut);
    MetricsFile(path_, 5).append(6, {{"loss", 2}});
    EXPECT_EQ(content(), "step,loss\n6,2.0\n");
  }
}

TEST_F(CsvMetrics, ALinkStays) {
  const std::string target = directory_ / "target";
  write_file(target, "step,loss\n1,5.0\n");
  fs::create_symlink(target, path_);
  MetricsFile(path_, 1).append(2, {{"more", 2}});
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(read_file(target), "step,loss,more\n1,5.0,\n2,,2.0\n");
}

TEST_F(CsvMetrics, AnotherFileIsRefusedAndUntouched) {
  for (const std::string text :
       {"hello\n", "stepping,stones\n1,2\n", "steps\n", "step,loss\nx,1\n", "step,loss\n-1,2\n", "{\"step\":1}\n"}) {
    write_file(path_, text);
    expect_error([&] { MetricsFile(path_, 5); }, Fault::data, "not comma-separated values whose first column");
    EXPECT_EQ(content(), text);
  }
  for (const char* begin : {"step,", "step,loss\n1,"}) {
    write_file(path_, begin + std::string(size_t{64} << 10, '1'));
    expect_error([&] { MetricsFile(path_, 5); }, Fault::data, "not comma-separated values whose first column");
  }
}

TEST_F(CsvMetrics, WhatIsWrittenThroughGetsAnotherHeader) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  MetricsFile file(path_, 0);
  file.append(1, {{"loss", 2}});
  file.append(1, {{"eval_loss", 3}});
  std::string text(1000, '\0');
  const int fd = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(fd, text.data(), text.size()))));
  ::close(fd);
  EXPECT_EQ(text, "step,loss\n1,2.0\nstep,loss,eval_loss\n1,,3.0\n");
}

}  // namespace
}  // namespace dtrain
