// What the configuration comes to for the engine's run and its observers.
#pragma once

#include <optional>

#include "apps/cnn_benchmarks/session.h"
#include "apps/observers/config_keeper.h"
#include "apps/observers/event_files.h"
#include "apps/observers/json_lines.h"
#include "apps/observers/tf_cnn_log.h"
#include "apps/observers/tracing.h"
#include "libdtrain/run/run.h"

namespace dtrain::cnn_benchmarks {

TrainerOptions trainer_options(const Session& session);
// Without a plan, only what says which checkpoint is continued.
RunOptions resume_options(const Config& config);
RunOptions run_options(Session& session);
observers::SpeedOptions speed_options(const Config& config);
observers::TfCnnLogOptions log_options(const Session& session);
observers::JsonLinesOptions json_options(const Session& session);
observers::TracingOptions tracing_options(const Session& session, cli::Log& log);
observers::EventFilesOptions event_options(const Session& session);
// Of --eval, in a folder that is made where it is missing.
observers::EventFilesOptions evaluation_event_options(const Session& session);

// Where train_dir holds a checkpoint that this run will continue, the batch, the sums and the threads of that
// checkpoint are taken over; the notices say so. Collective.
void keep_checkpoint(Config& config, const cli::FlagSet& set, Group& group);

}  // namespace dtrain::cnn_benchmarks
