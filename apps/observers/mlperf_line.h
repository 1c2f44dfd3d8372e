// Lines of MLPerf's compliance log 0.5.0, in the format of the package mlperf_compliance.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <source_location>
#include <string>
#include <string_view>

namespace dtrain::observers {

// One line, without its end:
//   :::MLPv0.5.0 resnet 1537375353.123456789 (apps/observers/mlperf_log.cpp:42) eval_accuracy: {"epoch": 4, "value":
//   0.5}
// `seconds` since 1970; `where`: source location. A null value is omitted with its colon; others are JSON with Python's
// spacing.
std::string mlperf_line(std::string_view benchmark, double seconds, const std::source_location& where,
                        std::string_view tag, const nlohmann::ordered_json& value);

// The same, now.
std::string mlperf_line(std::string_view benchmark, std::string_view tag, const nlohmann::ordered_json& value,
                        const std::source_location& where = std::source_location::current());

}  // namespace dtrain::observers
