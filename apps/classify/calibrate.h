// dtrain-classify calibrate: int8 calibration of a classifier on labelled images, with its loss of accuracy.
#pragma once

#include <string>
#include <vector>

namespace dtrain::classify {

// argv[0] is the program and the command. Returns the exit code.
int run_calibrate(const std::vector<std::string>& argv);

}  // namespace dtrain::classify
