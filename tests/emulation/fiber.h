// Fiber: a function on its own stack that can pause and resume. Runs a thread of a block.
#pragma once

#include <cstddef>
#include <functional>

namespace emulation {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Sets the body for the next resume(). The previous one must have ended.
  void begin(const std::function<void()>& body);
  // Runs the body until it pauses or ends.
  void resume();
  // Called from the body: returns to resume().
  void pause();
  bool done() const { return body_ == nullptr; }

 private:
  static void enter() noexcept;
  [[noreturn]] void run();

  void* memory_;             // guard page, then the stack, which grows towards it
  void* position_;           // stack pointer while paused
  void* resumer_ = nullptr;  // stack pointer of the resumer while running
  const std::function<void()>* body_ = nullptr;
  // State for AddressSanitizer's fiber API.
  void* shadow_ = nullptr;
  void* resumer_shadow_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_stack_bytes_ = 0;
};

}  // namespace emulation
