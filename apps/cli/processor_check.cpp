// Ends a program with one line where the processor lacks instructions that the rest of the program is compiled for. It
// is linked into every program by itself and compiled for any 64-bit processor, so it includes no header of C++, whose
// inline functions the linker might take from other objects, and it runs before all constructors, those of shared
// libraries included.
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
