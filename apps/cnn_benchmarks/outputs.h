// What a run writes for other tools, beside its own log.
#pragma once

#include <memory>
#include <vector>

#include "apps/cli/log.h"
#include "apps/cnn_benchmarks/session.h"
#include "libdtrain/run/observer.h"

namespace dtrain::cnn_benchmarks {

// The model garden's benchmark log and MLPerf's compliance log, as far as they are asked for.
std::vector<std::unique_ptr<Observer>> logs_for_tools(const Session& session, cli::Log& log);

}  // namespace dtrain::cnn_benchmarks
