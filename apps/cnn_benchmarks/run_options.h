// Options of the engine's run and of observers, from the configuration.
#pragma once

#include <optional>

#include "apps/cnn_benchmarks/training_job.h"
#include "apps/observers/config_keeper.h"
#include "apps/observers/event_files.h"
#include "apps/observers/live_view.h"
#include "apps/observers/tf_cnn_log.h"
#include "apps/observers/tracing.h"
#include "libdtrain/run/run.h"

namespace dtrain::cnn_benchmarks {

TrainerOptions trainer_options(const Session& session);
// Without a plan: only the options that determine the checkpoint to resume.
RunOptions resume_options(const Config& config);
RunOptions run_options(Session& session);
observers::SpeedOptions speed_options(const Config& config);
observers::TfCnnLogOptions log_options(const Session& session);
observers::FigureOptions figure_options(const Session& session);
observers::LiveViewOptions live_options(const Session& session);
observers::TracingOptions tracing_options(const Session& session, cli::Log& log);
observers::EventFilesOptions event_options(const Session& session);
// Event files of --eval, in a folder that is created if missing.
observers::EventFilesOptions evaluation_event_options(const Session& session);

// If the run resumes a checkpoint in train_dir, adopts its global batch, all-reduce settings and thread count, with
// notices. Collective.
void keep_checkpoint(Config& config, const cli::FlagSet& set, Group& group);

}  // namespace dtrain::cnn_benchmarks
