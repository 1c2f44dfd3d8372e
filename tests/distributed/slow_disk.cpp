// Preloaded library: the disk blocks writes of checkpoints until the file named by DTRAIN_DISK_ANSWERS exists.
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

extern "C" int fsync(int fd) {
  constexpr useconds_t kPause = 10'000;
  const char* const answers = std::getenv("DTRAIN_DISK_ANSWERS");
  char path[4096] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const bool of_checkpoint =
      readlink(link.c_str(), path, sizeof path - 1) > 0 && std::strstr(path, "/checkpoints/step-") != nullptr;
  while (of_checkpoint && answers != nullptr && access(answers, F_OK) != 0) usleep(kPause);
  return static_cast<int>(syscall(SYS_fsync, fd));
}
