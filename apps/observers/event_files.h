// TensorBoard event file of a run: scalars of steps and evaluations, other observers' measurements, and settings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/observers/scalar_tags.h"
#include "dtrain/io/event_file.h"

namespace dtrain::observers {

// Adds details to the events of a step that used `loss_scale`, while no later step is running: the program sets
// Cadence::inspect_every.
using StepDetails = std::function<void(const Stepped& event, double loss_scale, Summary& summary)>;

struct EventFilesOptions {
  EventFileOptions file{};
  uint64_t every = 0;  // steps between events; 0: displayed steps
  uint64_t details_every = 0;
  StepDetails details{};                   // called for steps that are multiples of `details_every`; empty: none
  ScalarTags tags{}, evaluation_tags{};    // tags of steps, and of evaluations
  bool trains = true;                      // false: only evaluations, in any order of steps
  std::vector<std::string> class_names{};  // by output of a classifier; a table at the start of a training
};

// A resumed run starts a new file that purges later steps of earlier files; pure evaluations purge nothing. A
// training's file starts with the recorded settings, as text and as hyperparameters, and ends with a completion status.
// If the file cannot be written, prints one notice and continues without it.
class EventFiles final : public Observer {
 public:
  EventFiles(EventFilesOptions options, std::function<void(const std::string&)> notice)
      : options_(std::move(options)), notice_(std::move(notice)) {}

  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved&) override;
  void ended(const Ended&) override;
  // Adds values under their names as tags.
  void put(uint64_t step, const std::vector<MetricValue>& scalars);
  // Sets EventFilesOptions::details later.
  void show(StepDetails details) { options_.details = std::move(details); }

 private:
  void attempt(const std::function<void()>& write);
  void write(uint64_t step, const Summary& summary);

  EventFilesOptions options_;
  const std::function<void(const std::string&)> notice_;
  std::optional<EventFile> file_;
  double l2_loss_ = 0;                  // of the last displayed step
  std::optional<double> loss_scale_{};  // state after the last step
};

}  // namespace dtrain::observers
