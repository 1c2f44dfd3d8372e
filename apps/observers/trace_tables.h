// Traces and profiles as text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libdtrain/io/trace_file.h"
#include "libdtrain/train/profile.h"

namespace dtrain::observers {

// In units of 10^9 per second, with four significant digits where there are three decimals; "-" where it is not known.
std::string rate(double amount, double seconds);

// A heading and a line for each kind of op, the slowest first: at most `rows` of them.
std::vector<std::string> profile_lines(std::span<const WorkRecord> records, bool by_layer, size_t rows);
// All of them, by op and then by op and layer.
std::vector<std::string> whole_profile(std::span<const WorkRecord> records);

// These throw what ResultFile does.
void write_lines(const std::string& path, const std::vector<std::string>& lines);
// A line for each span: lane, begin and duration in milliseconds, since the first one, its name and what is known of
// it, with tabs between.
void write_text(const std::string& path, std::span<const TraceSpan> spans);

}  // namespace dtrain::observers
