// dtrain-classify calibrate: how a classifier infers in int8, found on labelled images, and what that costs.
#pragma once

#include <string>
#include <vector>

namespace dtrain::classify {

// argv[0] is the program and the command. Returns the exit code.
int run_calibrate(const std::vector<std::string>& argv);

}  // namespace dtrain::classify
