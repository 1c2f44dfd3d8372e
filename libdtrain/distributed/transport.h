// Transport: messages between the ranks of a group, none of which waits. A CollectiveThread runs schedules over it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain::host {

// All calls come from one thread, and fail with Error(Fault::communication).
class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const char* name() const = 0;  // "MPI"
  virtual int rank() const = 0;
  virtual const std::vector<Place>& places() const = 0;  // by rank

  // Between two ranks the messages of a channel arrive in the order in which they were sent, whatever goes on in the
  // others. Collective.
  virtual int open_channel() = 0;

  // A message under way. Its bytes stay where they are until done() has been true, which ends it.
  using Request = size_t;
  virtual Request send(int channel, int peer, const std::byte* bytes, size_t count) = 0;
  // Takes a message of at most `most` bytes.
  virtual Request receive(int channel, int peer, std::byte* bytes, size_t most) = 0;
  // True once the message has left or has arrived; `count`: its bytes.
  virtual bool done(Request request, size_t& count) = 0;
  // The next message of a channel on which nothing else is received, from anybody. False where there is none.
  virtual bool take(int channel, int& peer, std::string& text) = 0;
  // Moves what can be moved.
  virtual void progress() {}
  // Nothing is under way any more on any rank. Collective; nothing else is called afterwards.
  virtual void finish() = 0;
};

}  // namespace dtrain::host
