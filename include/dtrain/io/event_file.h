// TensorBoard's event files: TFRecord files of Event messages (event.proto), as TensorFlow's writers leave them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/summary.h"

namespace dtrain {

// The generated class of event.proto.
namespace tensorboard {
class Event;
}

struct EventFileOptions {
  std::string folder{};  // must exist
  std::string host{};    // part of the file's name; characters not allowed in names become '_'
  // Events are buffered until there are this many, or until the oldest is this old.
  size_t most_pending = 10;
  double most_seconds = 120;
};

// Writer of a new file FOLDER/events.out.tfevents.SECONDS.HOST. Times are seconds since 1970, by the caller's clock.
// Failed writes throw Error(Fault::resource); their events are lost. Do not write on after one: the file may end in a
// partial record, which readers skip only at the end of a file.
class EventFile {
 public:
  // Records the start of a run at `first_step`: readers drop events of this and later steps in earlier files; nullopt:
  // they keep all. Readers order files by name: SECONDS is `wall_time`, or one more than the latest file's if that is
  // larger. Does not follow symbolic links. Throws Error(Fault::resource) if the file cannot be created.
  EventFile(const EventFileOptions& options, std::optional<uint64_t> first_step, double wall_time,
            FileSystem& files = system_files());
  // Flushes; ignores errors.
  ~EventFile();

  void add(uint64_t step, double wall_time, const Summary& summary);
  void flush();
  const std::string& path() const { return file_.path(); }

 private:
  void append(const tensorboard::Event& event);

  EventFileOptions options_;
  OutputFile file_;
  std::string pending_;
  size_t events_ = 0;               // pending
  std::optional<double> oldest_{};  // wall time of the oldest pending event
};

}  // namespace dtrain
