// What a step's ops reach of a device's peaks: as a table, and as a picture of both roofs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libdtrain/train/profile.h"

namespace dtrain::observers {

// Peaks of a device.
struct Roofs {
  double flops = 0, bytes = 0;  // per second, above 0
};

// Of at least one step: a heading, a line for each op and phase, the slowest first, and what the step did outside of
// ops, by phases. The share of the roof is max(FLOP/s / peak, bytes/s / bandwidth), and can exceed 1.
std::vector<std::string> roofline_table(std::span<const WorkRecord> records, const Roofs& roofs);

// An SVG with a point (a circle of class "op") for each op, phase and choice of shapes whose FLOPs and bytes are known,
// as large as its share of the step, and a legend of those that take the most time, with or without a point.
std::string roofline_svg(std::span<const WorkRecord> records, const Roofs& roofs);

}  // namespace dtrain::observers
