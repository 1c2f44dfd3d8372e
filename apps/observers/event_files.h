// TensorBoard's event file of a run: values of steps and of evaluations, what others measure, and the run's settings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/observers/scalar_tags.h"
#include "libdtrain/io/event_file.h"

namespace dtrain::observers {

// Adds to what is shown of a step that was made with `loss_scale`, while no later one is under way: the program sets
// Cadence::inspect_every.
using StepDetails = std::function<void(const Stepped& event, double loss_scale, Summary& summary)>;

struct EventFilesOptions {
  EventFileOptions file{};
  uint64_t every = 0;  // steps between those that have events; 0: the shown ones have
  uint64_t details_every = 0;
  StepDetails details{};                   // of each step whose number is a multiple of `details_every`; empty: none
  ScalarTags tags{}, evaluation_tags{};    // of steps, and of evaluations
  bool trains = true;                      // false: evaluations of what others train, in any order
  std::vector<std::string> class_names{};  // by output of a classifier: a table at the beginning of a training
};

// A run that goes on from a checkpoint begins a file of its own, by which what earlier ones hold of later steps is
// void; evaluations alone leave all that is there. The file of a training begins with what checkpoints record of it, as
// a text and as hyper-parameters, and says at the end that it has been completed. Where the file cannot be written one
// notice says so, and the run goes on without it.
class EventFiles final : public Observer {
 public:
  EventFiles(EventFilesOptions options, std::function<void(const std::string&)> notice)
      : options_(std::move(options)), notice_(std::move(notice)) {}

  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved&) override;
  void ended(const Ended&) override;
  // Under the tags that the values are named by.
  void put(uint64_t step, const std::vector<MetricValue>& scalars);
  // In place of EventFilesOptions::details, where they are known later.
  void show(StepDetails details) { options_.details = std::move(details); }

 private:
  void attempt(const std::function<void()>& write);
  void write(uint64_t step, const Summary& summary);

  EventFilesOptions options_;
  const std::function<void(const std::string&)> notice_;
  std::optional<EventFile> file_;
  double l2_loss_ = 0;                  // of the last shown step
  std::optional<double> loss_scale_{};  // after the last step
};

}  // namespace dtrain::observers
