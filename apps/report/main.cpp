// dtrain-report: what runs have left behind, as one page to look at.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/cli/range.h"
#include "apps/cli/run_main.h"
#include "apps/report/read_run.h"
#include "apps/report/sections.h"
#include "libdtrain/core/error.h"
#include "libdtrain/io/input_file.h"
#include "libdtrain/io/result_file.h"

namespace {

using namespace dtrain;

namespace fs = std::filesystem;

constexpr std::string_view kPage = "<!DOCTYPE html>";  // the beginning of each

constexpr char kAbout[] =
    "Writes a page of HTML about training runs that needs no other file and no network: a summary, curves, the parts "
    "of "
    "a step, a timeline, failures and restarts, checkpoints, the configuration and how it differs, and images with "
    "predictions. A RUN is a train_dir, or any folder with what a run has written, or a metrics file alone.\n"
    "Exit codes: 0 done, 1 usage, 2 a RUN that is none or is damaged, 6 memory or disk.";

// A file that the page may not replace: one of the runs, or one in the folder of a run that is no page itself.
bool belongs_to(const std::string& output, const std::string& run) {
  std::error_code failure;
  if (!fs::is_regular_file(output, failure)) return false;
  if (!fs::is_directory(run, failure)) return fs::equivalent(output, run, failure);
  const fs::path inner = fs::canonical(output, failure), outer = fs::canonical(run, failure);
  if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first != outer.end()) return false;
  std::string begin(kPage.size(), '\0');
  begin.resize(InputFile(output).read_some(0, begin.data(), begin.size()));
  return !begin.empty() && begin != kPage;
}

int run(const std::vector<std::string>& argv) {
  std::string output = "report.html", title = "Training report";
  int64_t pictures = 8;
  cli::FlagSet flags("dtrain-report", "RUN... [--output FILE]", kAbout);
  flags.add("output", output, "file to write the page to");
  flags.add("title", title, "title of the page");
  flags.add("images", pictures, "images of each end, the worst and the best, of a list of predictions",
            cli::kPositiveCount);
  const auto paths = cli::read_command_line(flags, argv);
  if (!paths) return 0;
  DT_CHECK(!paths->empty() && !output.empty(), "expected at least one RUN and --output; see --help");
  for (const std::string& path : *paths)
    DT_CHECK(!belongs_to(output, path), "--output=", output, ": is a file of the run ", path,
             ", which the page would replace; give another name");
  report::Runs runs;
  std::set<std::string> names;
  for (const std::string& path : *paths) {
    runs.push_back(report::read_run(path, static_cast<size_t>(pictures)));
    if (!names.insert(runs.back().name).second) runs.back().name = path;
    cli::print_notes(runs.back().notices);
  }
  ResultFile file(output);
  file.write(report::to_html(title, runs));
  file.commit();
  cli::patient_stdout() << fmt::format("Report:      {}", cli::escaped(output)) << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
