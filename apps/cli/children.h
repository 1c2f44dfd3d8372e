// Processes that a program starts and waits for.
#pragma once

#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/cli/child.h"

namespace dtrain::cli {

// Requests to stop that this process hears as long as the object is there are passed on to all. They end where this
// process is killed. To be made before there are threads.
class Children {
 public:
  // `together`: where one fails, the others have to end, too.
  explicit Children(bool together);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // `name` is what messages call it. Throws Error as Child's constructor.
  void start(const std::string& name, ChildOptions options);
  // Waits for all of them and passes on what they print. Returns the exit code of the first that failed for a reason of
  // its own, and prints one `error: ...`, that of this one; else kStopped where one has stopped on request, else 0.
  int wait();

 private:
  void look();
  // Ends those that do not follow one that has failed.
  void end_others();
  int severity_of(size_t index) const;
  int report() const;

  const bool together_;
  sigset_t signals_{}, before_{};
  int heard_ = -1;
  std::deque<Child> children_;
  std::vector<std::string> names_;
  std::vector<size_t> ends_;  // in the order in which they ended
  std::set<size_t> killed_;   // by this process
  std::optional<std::chrono::steady_clock::time_point> failed_;
};

}  // namespace dtrain::cli
