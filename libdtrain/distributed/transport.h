// Transport: non-blocking messages between the ranks of a group. A CollectiveThread runs schedules over it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dtrain/distributed/group.h"

namespace dtrain::host {

// Single-threaded. Failures throw Error(Fault::communication).
class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const char* name() const = 0;  // "MPI"
  virtual int rank() const = 0;
  virtual const std::vector<Place>& places() const = 0;  // by rank

  // Messages between two ranks arrive in order within a channel; channels are independent. Collective.
  virtual int open_channel() = 0;

  // Message in flight. Its bytes must stay valid until done() returns true, which frees it.
  using Request = size_t;
  virtual Request send(int channel, int peer, const std::byte* bytes, size_t count) = 0;
  // Receives a message of at most `most` bytes.
  virtual Request receive(int channel, int peer, std::byte* bytes, size_t most) = 0;
  // True once the message was sent or received; `count`: its bytes.
  virtual bool done(Request request, size_t& count) = 0;
  // Next message from any peer, on a channel without pending receives. False if there is none.
  virtual bool take(int channel, int& peer, std::string& text) = 0;
  // Makes progress.
  virtual void progress() {}
  // Shutdown, once no message is in flight on any rank. Collective; the last call.
  virtual void finish() = 0;
};

}  // namespace dtrain::host
