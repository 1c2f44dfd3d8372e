// Roofline of a step's ops: table and plot.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dtrain/train/profile.h"

namespace dtrain::observers {

// Peaks of a device.
struct Roofs {
  double flops = 0, bytes = 0;  // per second, positive
};

// Table of at least one step: a heading, a line per op and phase by descending time, and the time outside of ops by
// phase. The roofline share is max(FLOP/s / peak, bytes/s / bandwidth), and can exceed 1.
std::vector<std::string> roofline_table(std::span<const WorkRecord> records, const Roofs& roofs);

// SVG with a point (circle of class "op") for each op, phase and shape with known FLOPs and bytes; its area is its
// share of the step. The legend lists the slowest ops, with or without a point.
std::string roofline_svg(std::span<const WorkRecord> records, const Roofs& roofs);

}  // namespace dtrain::observers
