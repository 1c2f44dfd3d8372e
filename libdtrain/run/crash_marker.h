// Tells a process that crashed from one that was killed from outside: of both, nothing else is left.
#pragma once

#include <string>

namespace dtrain {

// While there is one, a crash of the process (SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT, unless another process sent
// it) creates the empty file `path` and then takes its course: the handlers that were there before see it. One at a
// time in a process; of several, the first counts.
class CrashMarker {
 public:
  explicit CrashMarker(const std::string& path);
  ~CrashMarker();
  CrashMarker(const CrashMarker&) = delete;
  CrashMarker& operator=(const CrashMarker&) = delete;

 private:
  bool is_first_ = false;
};

}  // namespace dtrain
