// Observers that write files: full disk and late evaluation results.
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/cli/log.h"
#include "apps/observers/event_files.h"
#include "apps/observers/stats_json.h"
#include "apps/observers/throughput_tracker.h"
#include "tests/event_reader.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

using Notices = std::vector<std::string>;

// RAII file size limit of this process, to simulate a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

Stepped step_event(uint64_t step, double loss, bool shown = true) {
  return {.step = step,
          .shown = shown,
          .loss = loss,
          .l2_loss = shown ? 0.5 : 0,
          .metrics = {{"mask_loss", 10 * loss}},
          .learning_rate = 0.1 * static_cast<double>(step),
          .seconds = 0.5};
}

Evaluated evaluation_event(uint64_t step, double value) {
  return {.step = step, .result = {.values = {{"AP", value}}, .examples = 3}};
}

TEST(EventFilesObserver, FullDiskEndsTheFileNotTheRun) {
  const TempDirectory directory;
  Notices notices;
  observers::EventFiles events({.file = {.folder = directory.path(), .host = "h", .most_pending = 1}},
                               [&](const std::string& text) { notices.push_back(text); });
  events.begun({});
  events.stepped(step_event(1, 1));
  {
    const FileSizeLimit limit(fs::file_size(event_files_in(directory.path()).at(0)) + 20);
    events.stepped(step_event(2, 1));
    EXPECT_EQ(notices.size(), 1u);
  }
  events.stepped(step_event(3, 1));
  events.evaluated(evaluation_event(3, 1));
  events.saved({});
  events.ended({});
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_TRUE(contains(notices[0], "File too large; the run goes on without TensorBoard's events")) << notices[0];
  EXPECT_EQ(shown_scalars(directory.path())["total_loss"], (std::map<uint64_t, float>{{1, 1.5f}}));
}

TEST(EventFilesObserver, NamesTheClassesAtTheBeginning) {
  const TempDirectory directory;
  observers::EventFiles events(
      {.file = {.folder = directory.path(), .host = "h", .most_pending = 1}, .class_names = {"", "tench", "a|b"}},
      [](const std::string& text) { ADD_FAILURE() << text; });
  events.begun({});
  events.ended({});
  const std::string bytes = read_file(event_files_in(directory.path()).at(0));
  EXPECT_TRUE(contains(bytes, "| class | name |\n|---|---|\n|       1 | tench |\n|       2 | a\\|b |\n"));
}

TEST(EventFilesObserver, MissingFolderDoesNotEndTheRun) {
  const TempDirectory directory;
  Notices notices;
  observers::EventFiles events({.file = {.folder = directory / "none", .host = "h"}},
                               [&](const std::string& text) { notices.push_back(text); });
  events.begun({});
  events.stepped(step_event(1, 1));
  EXPECT_EQ(notices.size(), 1u);
}

TEST(StatsJsonObserver, HasMeansAndLastValuesUnderTheProgramsNames) {
  const TempDirectory directory;
  observers::StatsJson stats(
      {.path = directory / "stats.json", .period = 3, .tags = {{"mask_loss", "mask"}, {"loss", ""}}},
      [](const std::string& text) { ADD_FAILURE() << text; });
  stats.begun({});
  for (uint64_t step = 1; step <= 6; ++step) {
    stats.put({{"other", static_cast<double>(step)}});
    stats.stepped(step_event(step, static_cast<double>(step), step != 3));
  }
  stats.evaluated(evaluation_event(6, std::nan("")));
  stats.evaluated(evaluation_event(3, 0.25));  // late
  stats.evaluated(evaluation_event(4, 0.75));  // within an epoch
  const auto rows = nlohmann::json::parse(read_file(directory / "stats.json"));
  const auto expected = nlohmann::json::parse(R"([
    {"epoch_num": 1, "global_step": 3, "total_loss": 2.5, "mask": 20, "l2_loss": 0.5, "other": 3, "AP": 0.25},
    {"epoch_num": 2, "global_step": 4, "AP": 0.75},
    {"epoch_num": 2, "global_step": 6, "total_loss": 5.5, "mask": 50, "l2_loss": 0.5, "other": 6, "AP": null}])");
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    auto row = rows[i];
    if (row.contains("total_loss")) {
      EXPECT_NEAR(row["learning_rate"], 0.1 * row["global_step"].get<double>(), 1e-12);
    }
    row.erase("learning_rate");
    EXPECT_EQ(row, expected[i]);
  }
}

TEST(StatsJsonObserver, RetriesFailedWrites) {
  const TempDirectory directory;
  Notices notices;
  const std::string path = directory / "stats.json";
  observers::StatsJson stats({.path = path}, [&](const std::string& text) { notices.push_back(text); });
  stats.begun({});
  stats.stepped(step_event(1, 1));
  const std::string before = read_file(path);
  {
    const FileSizeLimit limit(before.size() + 1);
    stats.stepped(step_event(2, 1));
    stats.stepped(step_event(3, 1));
    EXPECT_EQ(read_file(path), before);
  }
  EXPECT_EQ(notices.size(), 1u);
  stats.stepped(step_event(4, 1));
  EXPECT_EQ(nlohmann::json::parse(read_file(path)).size(), 4u);
  observers::StatsJson next({.path = path}, [&](const std::string& text) { notices.push_back(text); });
  next.begun({.step = 2});
  EXPECT_EQ(nlohmann::json::parse(read_file(path)).size(), 2u);
  EXPECT_EQ(notices.size(), 1u);
}

TEST(ThroughputTrackerObserver, PrintsAwsFormat) {
  std::string lines;
  std::map<std::string, double> scalars;
  observers::ThroughputTracker tracker({.images = 617'283.75,
                                        .period = 5,
                                        .every = 2,
                                        .line = [&](const std::string& text) { lines += text + "\n"; },
                                        .put =
                                            [&](uint64_t step, const std::vector<MetricValue>& values) {
                                              for (const auto& [name, value] : values)
                                                scalars[std::to_string(step) + " " + name] = value;
                                            }});
  for (uint64_t step = 4; step <= 7; ++step) {  // resumed from step 3
    tracker.stepping(step);
    tracker.stepped(step_event(step, 1));
  }
  const std::string two = "[ThroughputTracker] Over last 2 steps, ";
  const std::string both = two + "MeanDuration=0.50 seconds\n" + two + "MeanThroughput=1,234,567.50 items/sec\n";
  EXPECT_TRUE(lines.starts_with(both)) << lines;
  EXPECT_TRUE(lines.ends_with(both)) << lines;
  for (const char* name : {"MeanEpochThroughput", "EpochWallClockDuration", "CallbackOverheadDuration"}) {
    EXPECT_TRUE(contains(lines, std::string("[ThroughputTracker] Over last epoch, ") + name + ": ")) << lines;
    EXPECT_TRUE(scalars.contains(std::string("5 Throughput/") + name)) << name;
  }
  EXPECT_EQ(scalars["7 Throughput/MeanThroughput"], 1'234'567.5);
  EXPECT_EQ(scalars["5 Throughput/MeanDuration"], 0.5);
}

TEST(LineFile, BuffersAndAppends) {
  const TempDirectory directory;
  const std::string path = directory / "log";
  write_file(path, "one\ncut o");
  std::ostringstream out, err;
  cli::LineFile file;
  cli::Log log(out, err);
  log.copy_to(file);
  log.line("first\nline");
  EXPECT_EQ(read_file(path), "one\ncut o");
  log.open_copy(path);
  log.notice("second");
  log.copy("third");
  EXPECT_EQ(read_file(path), "one\ncut o\nfirst\\nline\nnote: second\nthird\n");
  {
    const FileSizeLimit limit(fs::file_size(path));
    log.line("fourth");
    log.line("fifth");
  }
  log.line("sixth");
  EXPECT_EQ(out.str(), "first\\nline\nfourth\nfifth\nsixth\n");
  EXPECT_TRUE(contains(err.str(), "File too large; the run goes on without a copy of the log")) << err.str();
  EXPECT_TRUE(read_file(path).ends_with("third\n"));
}

TEST(LineFile, UnopenableLogDoesNotEndTheRun) {
  const TempDirectory directory;
  std::ostringstream out, err;
  cli::LineFile file, linked;
  cli::Log log(out, err);
  log.copy_to(file);
  log.open_copy(directory / "none/log");
  log.line("first");
  EXPECT_TRUE(contains(err.str(), "none/log: No such file or directory; the run goes on")) << err.str();
  fs::create_symlink(directory / "target", directory / "link");
  log.copy_to(linked);
  expect_error([&] { log.open_copy(directory / "link"); }, Fault::config, "/link: is a link");
  EXPECT_FALSE(fs::exists(directory / "target"));
}

}  // namespace
}  // namespace dtrain
