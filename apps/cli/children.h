// Child processes of a program.
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

// Forwards stop requests to all children during the lifetime of the object. Children end if this process is killed.
// Construct before starting threads.
class Children {
 public:
  // `together`: if one fails, the others are ended too.
  explicit Children(bool together);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // `name`: for messages. Throws like Child's constructor.
  void start(const std::string& name, ChildOptions options);
  // Waits for all children and forwards their output. If one failed by itself, prints the `error: ...` line of the
  // first and returns its exit code; else kStopped if one stopped on request; else 0.
  int wait();

 private:
  void look();
  // Kills siblings that outlive a failed child's grace period.
  void end_others();
  int severity_of(size_t index) const;
  int report() const;

  const bool together_;
  sigset_t signals_{}, before_{};
  int heard_ = -1;
  std::deque<Child> children_;
  std::vector<std::string> names_;
  std::vector<size_t> ends_;  // in order of exit
  std::set<size_t> killed_;   // killed by this process
  std::optional<std::chrono::steady_clock::time_point> failed_;
};

}  // namespace dtrain::cli
