// The parts of a report.
#pragma once

#include <string>
#include <vector>

#include "apps/report/page.h"
#include "apps/report/run_data.h"

namespace dtrain::report {

using Runs = std::vector<RunData>;

// Each is empty where no run has anything for it.
std::string summary_section(const Runs& runs);
std::string notice_section(const Runs& runs);
std::string curve_section(const Runs& runs);      // loss, accuracy, evaluations, rate, throughput
std::string step_part_section(const Runs& runs);  // a chart for each run
std::string other_figure_section(const Runs& runs);
std::string timeline_section(const Runs& runs);
std::string event_section(const Runs& runs);
std::string checkpoint_section(const Runs& runs);
std::string setting_section(const Runs& runs);
std::string sample_section(const Runs& runs);

// The whole page.
std::string to_html(const std::string& title, const Runs& runs);

}  // namespace dtrain::report
