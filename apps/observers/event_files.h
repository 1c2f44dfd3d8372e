// TensorBoard's event file of a run: scalars of steps, of evaluations, and of what others measure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/observers/scalar_tags.h"
#include "libdtrain/io/event_file.h"

namespace dtrain::observers {

struct EventFilesOptions {
  EventFileOptions file{};
  uint64_t every = 0;                    // steps between those that have events; 0: the shown ones have
  ScalarTags tags{}, evaluation_tags{};  // of steps, and of evaluations
  bool trains = true;                    // false: evaluations of what others train, in any order
};

// A run that goes on from a checkpoint begins a file of its own, by which what earlier ones hold of later steps is
// void; evaluations alone leave all that is there. Where the file cannot be written one notice says so, and the run
// goes on without it.
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

 private:
  void attempt(const std::function<void()>& write);

  const EventFilesOptions options_;
  const std::function<void(const std::string&)> notice_;
  std::optional<EventFile> file_;
  double l2_loss_ = 0;  // of the last shown step
};

}  // namespace dtrain::observers
