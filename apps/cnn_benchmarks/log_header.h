// The log header.
#pragma once

#include <string>

#include "apps/cli/log.h"
#include "apps/cnn_benchmarks/training_schedule.h"

namespace dtrain::cnn_benchmarks {

// As tf_cnn_benchmarks' print_info, in the form of --compatible_with, except for the first line, which names dtrain.
void print_header(cli::Log& log, const Settings& settings, const TrainingSchedule& schedule,
                  const std::string& version);

}  // namespace dtrain::cnn_benchmarks
