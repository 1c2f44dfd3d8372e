// Ends the program with one line if the processor lacks instructions that the program is compiled for. Linked into
// every program and compiled for any x86-64 processor; empty for others. It includes no C++ headers, because the linker
// might pick their inline functions from objects compiled for newer processors. It runs before all constructors,
// including those of shared libraries.
#if defined(__x86_64__)
#include <unistd.h>

namespace {

void check_processor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return;
  constexpr char kMessage[] =
      "error: this processor has no AVX2, FMA or BMI2, which all builds need: one of 2013 or later has them\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  ::_exit(1);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const check_first)() = check_processor;

}  // namespace

#endif
