// TensorBoard's event files: TFRecord files of Event messages (event.proto), as TensorFlow's writers leave them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/summary.h"

namespace dtrain {

// The generated class of event.proto.
namespace tensorboard {
class Event;
}

struct EventFileOptions {
  std::string folder{};  // must exist
  std::string host{};    // a part of the file's name; what a name should not hold becomes '_'
  // Events wait in memory until there are so many, or the first one of them is so old.
  size_t most_pending = 10;
  double most_seconds = 120;
};

// One file of one run, always a new one: FOLDER/events.out.tfevents.SECONDS.HOST. Times are seconds since 1970, by the
// caller's clock. What cannot be written throws Error(Fault::resource) and is lost, and the file had better be given
// up: its end may be a part of a record, which readers pass over only there.
class EventFile {
 public:
  // Writes that a run begins whose first step is `first_step`: readers drop what files before this one hold of it and
  // of later steps; without it they keep all. Readers go through a folder by names, so the seconds in the name are
  // `wall_time` or, where there is such a file already, one more than the latest. Creates nothing through a link.
  EventFile(const EventFileOptions& options, std::optional<uint64_t> first_step, double wall_time,
            FileSystem& files = system_files());
  // Writes what is pending, as far as that is possible.
  ~EventFile();

  void add(uint64_t step, double wall_time, const Summary& summary);
  void flush();
  const std::string& path() const { return file_.path(); }

 private:
  void append(const tensorboard::Event& event);

  EventFileOptions options_;
  OutputFile file_;
  std::string pending_;
  size_t events_ = 0;               // that are pending
  std::optional<double> oldest_{};  // the time of the first one
};

}  // namespace dtrain
