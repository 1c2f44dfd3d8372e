#include "tests/emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/emulation/sanitizer.h"

#ifndef __x86_64__
#error "the emulation of CUDA switches stacks on x86-64 only"
#endif

#ifdef EMULATION_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

// void emulation_switch_stack(void** save, void* load): pushes callee-saved registers, stores the stack pointer in
// *save and restores those of the other stack. swapcontext() would make two system calls.
asm(R"(
  .text
  .globl emulation_switch_stack
  .type emulation_switch_stack, @function
emulation_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size emulation_switch_stack, . - emulation_switch_stack
)");
extern "C" void emulation_switch_stack(void** save, void* load);

namespace emulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;  // required by AddressSanitizer's reports
constexpr size_t kSavedRegisters = 6;

// A new fiber starts in enter(), which has no arguments.
Fiber* entering = nullptr;

size_t guard_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber() {
  const size_t guard = guard_bytes();
  memory_ = mmap(nullptr, guard + kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory_ == MAP_FAILED || mprotect(memory_, guard, PROT_NONE) != 0) {
    std::perror("emulation: no memory for the stack of a thread");
    std::abort();
  }
  // Initial frame as for a call of enter(): an unaligned null return address, its own address, the saved registers.
  auto** top = reinterpret_cast<void**>(static_cast<char*>(memory_) + guard + kStackBytes) - 1;
  *--top = reinterpret_cast<void*>(&Fiber::enter);
  position_ = top - kSavedRegisters;
}

Fiber::~Fiber() { munmap(memory_, guard_bytes() + kStackBytes); }

void Fiber::begin(const std::function<void()>& body) { body_ = &body; }

void Fiber::resume() {
  entering = this;
#ifdef EMULATION_ASAN
  __sanitizer_start_switch_fiber(&resumer_shadow_, static_cast<char*>(memory_) + guard_bytes(), kStackBytes);
#endif
  emulation_switch_stack(&resumer_, position_);
#ifdef EMULATION_ASAN
  __sanitizer_finish_switch_fiber(resumer_shadow_, nullptr, nullptr);
#endif
}

void Fiber::pause() {
#ifdef EMULATION_ASAN
  __sanitizer_start_switch_fiber(&shadow_, resumer_stack_, resumer_stack_bytes_);
#endif
  emulation_switch_stack(&position_, resumer_);
#ifdef EMULATION_ASAN
  __sanitizer_finish_switch_fiber(shadow_, &resumer_stack_, &resumer_stack_bytes_);
#endif
}

void Fiber::enter() noexcept { entering->run(); }

void Fiber::run() {
#ifdef EMULATION_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &resumer_stack_, &resumer_stack_bytes_);
#endif
  for (;;) {
    (*body_)();
    body_ = nullptr;
    pause();
  }
}

}  // namespace emulation
