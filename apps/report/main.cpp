// dtrain-report: HTML report of training runs.
#include <set>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/cli/range.h"
#include "apps/cli/run_main.h"
#include "apps/report/page.h"
#include "apps/report/read_run.h"
#include "apps/report/sections.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/result_file.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Writes a self-contained HTML report of training runs: summary, curves, step-time breakdown, timeline, failures "
    "and restarts, checkpoints, configuration and differences, and images with predictions. A RUN is a train_dir, any "
    "folder with files of a run, or a metrics file.\n"
    "Exit codes: 0 done, 1 usage, 2 a RUN is damaged or not a run, 6 memory or disk.";

// Overwrites only reports and empty files: other files may be the run's or the user's.
void check_output(const std::string& output) {
  const std::string place = replaced_file(output);
  if (place.empty()) return;
  std::string begin(report::kPageBegin, '\0');
  begin.resize(InputFile(place, Fault::config).read_some(0, begin.data(), begin.size()));
  DT_CHECK(begin.empty() || report::is_page(begin), "--output=", output,
           ": exists and was not written by dtrain-report; choose another --output, or move the file away");
}

int run(const std::vector<std::string>& argv) {
  std::string output = "report.html", title = "Training report";
  int64_t pictures = 8;
  cli::FlagSet flags("dtrain-report", "RUN... [--output FILE]", kAbout);
  flags.add("output", output, "output file");
  flags.add("title", title, "title of the page");
  flags.add("images", pictures, "number of worst and of best images of a list of predictions", cli::kPositiveCount);
  const auto paths = cli::read_command_line(flags, argv);
  if (!paths) return 0;
  DT_CHECK(!paths->empty() && !output.empty(), "expected at least one RUN and --output; see --help");
  check_output(output);
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
