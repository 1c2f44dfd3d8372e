// Simulates a hanging disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include "dtrain/io/file_system.h"

namespace dtrain {

// Blocks fsync until answer(); fails the test if answer() is not called.
class WaitingDisk : public FileSystem {
 public:
  int sync(int fd) override {
    wait();
    return FileSystem::sync(fd);
  }
  int sync_directory(const std::string& path) override {
    wait();
    return FileSystem::sync_directory(path);
  }
  void answer() {
    const std::lock_guard lock(mutex_);
    answers_ = true;
    answered_.notify_all();
  }
  int waits() {
    const std::lock_guard lock(mutex_);
    return waits_;
  }

 private:
  void wait() {
    constexpr std::chrono::seconds kLimit{60};
    std::unique_lock lock(mutex_);
    if (answers_) return;
    ++waits_;
    EXPECT_TRUE(answered_.wait_for(lock, kLimit, [&] { return answers_; })) << "nobody has the disk answer";
    answers_ = true;
  }

  std::mutex mutex_;
  std::condition_variable answered_;
  bool answers_ = false;
  int waits_ = 0;
};

}  // namespace dtrain
