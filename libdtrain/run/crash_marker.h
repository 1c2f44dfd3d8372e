// CrashMarker: distinguishes a crash from an external kill after the fact.
#pragma once

#include <string>

namespace dtrain {

// For its lifetime, a crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT, unless sent by another process) creates the
// empty file `path` and proceeds to the previous handlers. One per process; the first wins.
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
