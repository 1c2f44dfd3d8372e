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

TrainerOptions trainer_options(const TrainingJob& job);
// Without a plan: only the options that determine the checkpoint to resume.
RunOptions resume_options(const Settings& settings);
RunOptions run_options(TrainingJob& job);
observers::SpeedOptions speed_options(const Settings& settings);
observers::TfCnnLogOptions log_options(const TrainingJob& job);
observers::FigureOptions figure_options(const TrainingJob& job);
observers::LiveViewOptions live_options(const TrainingJob& job);
observers::TracingOptions tracing_options(const TrainingJob& job, cli::Log& log);
observers::EventFilesOptions event_options(const TrainingJob& job);
// Event files of --eval, in a folder that is created if missing.
observers::EventFilesOptions evaluation_event_options(const TrainingJob& job);

// If the run resumes a checkpoint in train_dir, adopts its global batch, all-reduce settings and thread count, with
// notices. Collective.
void adopt_checkpoint(Settings& settings, const cli::FlagSet& set, Group& group);

}  // namespace dtrain::cnn_benchmarks
