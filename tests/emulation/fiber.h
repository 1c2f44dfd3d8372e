// Fiber: a stack of its own on which a function runs, pauses and goes on. What a thread of a block runs on.
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

  // Takes a body, which the next resume() begins. The one before is done.
  void begin(const std::function<void()>& body);
  // Runs the body until it pauses or ends.
  void resume();
  // Called from the body: back to resume().
  void pause();
  bool done() const { return body_ == nullptr; }

 private:
  static void enter() noexcept;
  [[noreturn]] void run();

  void* memory_;             // a guard page, then the stack, which grows towards it
  void* position_;           // the stack pointer of the fiber while it is paused
  void* resumer_ = nullptr;  // and that of who resumed it, while it runs
  const std::function<void()>* body_ = nullptr;
  // What AddressSanitizer wants to know of a switch.
  void* shadow_ = nullptr;
  void* resumer_shadow_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_stack_bytes_ = 0;
};

}  // namespace emulation
