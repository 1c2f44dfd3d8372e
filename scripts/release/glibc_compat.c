// Functions that Debian's GCC 12 runtime takes from C libraries later than 2.31. Linked into our libstdc++, which hides
// them by its version script.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// glibc 2.32: false, so that libstdc++ always counts references atomically.
char __libc_single_threaded = 0;

// glibc 2.36; std::random_device.
uint32_t arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    if (errno != EINTR) abort();
  return number;
}

// glibc 2.38: names that later headers give to the functions of C23.
long __isoc23_strtol(const char* text, char** end, int base) { return strtol(text, end, base); }
unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return strtoul(text, end, base); }
