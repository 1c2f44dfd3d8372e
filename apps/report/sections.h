// Sections of a report.
#pragma once

#include <string>
#include <vector>

#include "apps/report/page.h"
#include "apps/report/run_data.h"

namespace dtrain::report {

using Runs = std::vector<RunData>;

// A section without data is empty.
std::string summary_section(const Runs& runs);
std::string notice_section(const Runs& runs);
std::string curve_section(const Runs& runs);      // loss, accuracy, evaluations, learning rate, throughput
std::string step_part_section(const Runs& runs);  // one chart per run
std::string other_figure_section(const Runs& runs);
std::string timeline_section(const Runs& runs);
std::string event_section(const Runs& runs);
std::string checkpoint_section(const Runs& runs);
std::string setting_section(const Runs& runs);
std::string sample_section(const Runs& runs);

// The whole page.
std::string to_html(const std::string& title, const Runs& runs);

}  // namespace dtrain::report
