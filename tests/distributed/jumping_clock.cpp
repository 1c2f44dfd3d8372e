// Preloaded library: rank 1's wall clock jumps by an hour at every read.
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

time_t jump() {
  static const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  static thread_local bool ahead = false;
  ahead = !ahead;
  return rank != nullptr && std::strcmp(rank, "1") == 0 ? (ahead ? 3600 : -3600) : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += jump();
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
}
