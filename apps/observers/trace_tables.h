// Traces and profiles as text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dtrain/train/profile.h"
#include "libdtrain/io/trace_file.h"

namespace dtrain::observers {

// In units of 10^9 per second, with four significant digits and at most three decimals; "-" if unknown.
std::string rate(double amount, double seconds);

// A heading and a line per kind of op by descending time, at most `rows`.
std::vector<std::string> profile_lines(std::span<const WorkRecord> records, bool by_layer, size_t rows);
// All rows, by op, and then by op and layer.
std::vector<std::string> whole_profile(std::span<const WorkRecord> records);

// These throw like ResultFile.
void write_lines(const std::string& path, const std::vector<std::string>& lines);
// A tab-separated line per span: lane, begin in milliseconds since the first span, duration in milliseconds, name and
// details.
void write_text(const std::string& path, std::span<const TraceSpan> spans);

}  // namespace dtrain::observers
