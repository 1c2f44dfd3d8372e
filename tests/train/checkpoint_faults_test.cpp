// Checkpoints of a killed process or on a full disk: a restart always finds the old or the new one complete.
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <random>
#include <set>

#include "dtrain/train/checkpoint.h"
#include "libdtrain/train/checkpoint_files.h"
#include "tests/files.h"
#include "tests/testing.h"
#include "tests/train/checkpoint_fixture.h"
#include "tests/waiting_disk.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// Kills its own process once `budget` is used up: each written byte and each other call costs one.
class DeadlyDisk : public FileSystem {
 public:
  int create(const std::string& path) override { return spend(), FileSystem::create(path); }
  ssize_t write(int fd, const void* data, size_t size) override {
    if (size > budget) {
      FileSystem::write(fd, data, budget);
      ::raise(SIGKILL);
    }
    budget -= size;
    spent += size;
    return FileSystem::write(fd, data, size);
  }
  int sync(int) override { return spend(), 0; }  // no sync needed: the machine stays up
  int rename(const std::string& from, const std::string& to) override { return spend(), FileSystem::rename(from, to); }
  int unlink(const std::string& path) override { return spend(), FileSystem::unlink(path); }
  int symlink(const std::string& target, const std::string& path) override {
    return spend(), FileSystem::symlink(target, path);
  }
  int make_directory(const std::string& path) override { return spend(), FileSystem::make_directory(path); }
  int remove_directory(const std::string& path) override { return spend(), FileSystem::remove_directory(path); }
  int sync_directory(const std::string&) override { return spend(), 0; }

  size_t budget = SIZE_MAX, spent = 0;

 private:
  void spend() {
    if (budget == 0) ::raise(SIGKILL);
    --budget;
    ++spent;
  }
};

// With keep 2 and steps 1 and 2 present, saving step 3 writes, commits, and removes step 1. Killed before every call
// and at sampled bytes.
TEST(CheckpointFaults, KilledAnywhere) {
  const TempDirectory directory;
  const std::string origin = directory / "origin", copy = directory / "copy";
  save_steps(origin, system_files(), 1, 2);
  const auto fresh_copy = [&] {
    fs::remove_all(copy);
    fs::copy(origin, copy, fs::copy_options::recursive);
  };
  fresh_copy();
  DeadlyDisk whole;
  save_steps(copy, whole, 3, 3);
  ASSERT_EQ(step_found(copy), 3u);

  std::mt19937 random(3);
  int old_found = 0, new_found = 0, completed = 0;
  for (size_t point = 0; point < 48; ++point) {
    // All calls at both ends, evenly spread bytes between them.
    const size_t budget = point < 4    ? point
                          : point < 20 ? whole.spent - (20 - point)
                                       : (whole.spent - 30) * (point - 20) / 28 + random() % 20;
    fresh_copy();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DeadlyDisk disk;
      disk.budget = budget;
      save_steps(copy, disk, 3, 3);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      ++completed;
      continue;
    }
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    const uint64_t found = step_found(copy);
    ASSERT_TRUE(found == 2 || found == 3) << "killed after " << budget << ": found " << found;
    ++(found == 2 ? old_found : new_found);
  }
  EXPECT_GE(old_found, 25);
  EXPECT_GE(new_found, 3);
  EXPECT_EQ(completed, 0);
}

// Saves step 4 as best, replacing step 1.
void save_best(const std::string& train_dir, FileSystem& files) {
  SmallModel model;
  Checkpointer checkpointer(model.store, options_for(train_dir), ignore, files);
  checkpointer.keep_best(4);
  save_step(checkpointer, model, 4);
}

// Killed before each of the last calls: the link always leads to the old or the new best.
TEST(CheckpointFaults, KilledBetweenASaveAndTheLinkToTheBest) {
  const TempDirectory directory;
  const std::string origin = directory / "origin", copy = directory / "copy";
  {
    SmallModel model;
    Checkpointer checkpointer(model.store, options_for(origin), ignore);
    checkpointer.keep_best(1);
    for (uint64_t step = 1; step <= 3; ++step) save_step(checkpointer, model, step);
  }
  const auto fresh_copy = [&] {
    fs::remove_all(copy);
    fs::copy(origin, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  };
  fresh_copy();
  DeadlyDisk whole;
  save_best(copy, whole);
  std::set<std::string> found;
  for (size_t point = 1; point <= 18; ++point) {
    fresh_copy();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DeadlyDisk disk;
      disk.budget = whole.spent - point;
      save_best(copy, disk);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << point;
    found.insert(fs::read_symlink(copy + "/best").string());
    EXPECT_NO_THROW(verify_checkpoint(copy + "/best")) << point;
    save_best(copy, system_files());
    EXPECT_EQ(fs::read_symlink(copy + "/best"), "checkpoints/step-4") << point;
  }
  EXPECT_EQ(found, (std::set<std::string>{"checkpoints/step-1", "checkpoints/step-4"}));
}

class FullDisk : public FileSystem {
 public:
  ssize_t write(int fd, const void* data, size_t size) override {
    if (!full) return FileSystem::write(fd, data, size);
    errno = ENOSPC;
    return -1;
  }
  int free_bytes(const std::string& path, uint64_t& bytes) override {
    const int status = FileSystem::free_bytes(path, bytes);
    if (nearly_full) bytes = 1 << 20;
    return status;
  }
  bool full = false, nearly_full = false;
};

TEST(CheckpointFaults, FullDiskIsWarnedOfCountedAndRecoveredFrom) {
  const TempDirectory directory;
  FullDisk disk;
  SmallModel model;
  std::vector<std::string> warnings;
  Checkpointer checkpointer(
      model.store, {.train_dir = directory.path(), .asynchronous = true},
      [&](const std::string& warning) { warnings.push_back(warning); }, disk);
  const auto checkpoints = [&] { return std::distance(fs::directory_iterator(directory / "checkpoints"), {}); };
  const auto save = [&](uint64_t step) {
    checkpointer.save(state_at(step));
    return checkpointer.wait().has_value();
  };
  EXPECT_TRUE(save(1));
  disk.full = true;
  EXPECT_FALSE(save(2));
  EXPECT_FALSE(save(3));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[1].find("checkpoint of step 3 failed (2 in a row, the run ends at 3)"), std::string::npos);
  EXPECT_NE(warnings[1].find("No space left on device"), std::string::npos) << warnings[1];
  EXPECT_EQ(checkpoints(), 1);
  disk.full = false;
  EXPECT_TRUE(save(4));  // success resets the count
  disk.nearly_full = true;
  for (uint64_t step : {5, 6, 7}) EXPECT_FALSE(save(step));
  EXPECT_NE(warnings.back().find("1 MiB free"), std::string::npos) << warnings.back();
  expect_error([&] { checkpointer.save(state_at(8)); }, Fault::resource, "3 checkpoints in a row failed");
  EXPECT_EQ(checkpoints(), 2);
}

struct Unmount {
  std::string mount_point;
  ~Unmount() { ::umount(mount_point.c_str()); }
};

// A real file system of 256 KiB, with room for the margin only by our own accounting.
TEST(CheckpointFaults, FullTmpfs) {
  const TempDirectory directory;
  const std::string mount_point = directory / "small";
  fs::create_directory(mount_point);
  if (::mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "SKIPPED: the right to mount a tmpfs";
  const Unmount at_the_end{mount_point};
  class BlindDisk : public FileSystem {
    int free_bytes(const std::string&, uint64_t&) override { return -1; }
  } disk;
  {
    SmallModel model;
    std::vector<std::string> warnings;
    Checkpointer checkpointer(
        model.store, {.train_dir = mount_point, .asynchronous = false},
        [&](const std::string& warning) { warnings.push_back(warning); }, disk);
    save_step(checkpointer, model, 1);
    uint64_t free_bytes = 0;
    ASSERT_EQ(system_files().free_bytes(mount_point, free_bytes), 0);
    write_file(mount_point + "/filler", std::string(free_bytes - 4096, 'x'));
    save_step(checkpointer, model, 2);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("No space left on device"), std::string::npos) << warnings[0];
    EXPECT_FALSE(checkpointer.wait());
    fs::remove(mount_point + "/filler");
    save_step(checkpointer, model, 3);
    EXPECT_TRUE(checkpointer.wait());
  }
  EXPECT_EQ(step_found(mount_point), 3u);
}

TEST(CheckpointFaults, VanishedDirectoryStopsNothingUntilTheThirdTime) {
  const TempDirectory directory;
  SmallModel model;
  int warnings = 0;
  Checkpointer checkpointer(model.store, options_for(directory / "run"), [&](const std::string&) { ++warnings; });
  fs::remove_all(directory / "run");
  save_step(checkpointer, model, 1);
  save_step(checkpointer, model, 2);
  EXPECT_EQ(warnings, 2);
  expect_error([&] { save_step(checkpointer, model, 3); }, Fault::resource, "No such file or directory");
  write_file(directory / "file", "");
  for (const char* name : {"file", "file/run"})
    expect_error([&] { Checkpointer(model.store, options_for(directory / name), ignore); }, Fault::config,
                 "file: is not a directory");
}

// Other ranks wait for the rank that names the best checkpoint.
TEST(CheckpointFaults, TheBestIsNamedWithoutWaitingForASave) {
  const TempDirectory directory;
  const std::string run = directory / "run";
  fs::create_directories(run + "/checkpoints");  // would also wait
  SmallModel model;
  WaitingDisk disk;
  CheckpointOptions options = options_for(run);
  options.asynchronous = true;
  Checkpointer checkpointer(model.store, options, ignore, disk);
  model.advance_to(1);
  checkpointer.save(state_at(1));
  EXPECT_TRUE(checkpointer.busy(0.01));
  checkpointer.keep_candidate(1);
  checkpointer.keep_best(1);
  EXPECT_TRUE(checkpointer.busy());
  EXPECT_FALSE(fs::exists(run + "/best"));
  disk.answer();
  checkpointer.wait();
  EXPECT_FALSE(checkpointer.busy());
  EXPECT_TRUE(fs::equivalent(run + "/best", checkpoint_path(run + "/checkpoints", 1)));
}

TEST(CheckpointFaults, TheBestIsLinkedWithoutWaitingForTheDisk) {
  const TempDirectory directory;
  const std::string run = directory / "run";
  save_steps(run, system_files(), 1, 2);
  SmallModel model;
  WaitingDisk disk;
  Checkpointer checkpointer(model.store, options_for(run), ignore, disk);
  checkpointer.keep_best(1);
  EXPECT_TRUE(fs::equivalent(run + "/best", checkpoint_path(run + "/checkpoints", 1)));
  EXPECT_EQ(disk.waits(), 0);
}

// Reported by a start, renamed by a save of their steps.
TEST(CheckpointFaults, BrokenLinksArePassedOver) {
  const TempDirectory directory;
  const std::string run = directory / "run", checkpoints = run + "/checkpoints";
  save_steps(run, system_files(), 1, 1);
  fs::create_symlink("step-2", checkpoints + "/step-2");
  fs::create_symlink("gone", checkpoints + "/step-3");
  fs::create_symlink(std::string(300, 'x'), checkpoints + "/step-4");
  fs::create_symlink("best", run + "/best");
  std::vector<std::string> warnings;
  SmallModel model;
  Checkpointer checkpointer(model.store, options_for(run), [&](const std::string& line) { warnings.push_back(line); });
  const auto warning = [&](int step, const char* reason) {
    return concat(checkpoints, "/step-", step, " is a link that cannot be followed (", reason, "): passed over");
  };
  EXPECT_EQ(warnings, (std::vector{warning(2, "Too many levels of symbolic links"),
                                   warning(3, "No such file or directory"), warning(4, "File name too long")}));
  EXPECT_EQ(checkpointer.restore_latest(state_at(0))->state.step, 1u);
  save_step(checkpointer, model, 2);
  EXPECT_EQ(checkpointer.latest(), checkpoints + "/step-2");
  EXPECT_TRUE(list_broken_links(checkpoints).empty());
  EXPECT_EQ(warnings.size(), 6u);
  EXPECT_FALSE(fs::is_symlink(run + "/best"));
}

// The target may be unmounted: a start from step 0 would lose progress.
TEST(CheckpointFaults, ALinkToWhatIsGoneIsNoEmptyDirectory) {
  const TempDirectory directory;
  const std::string run = directory / "run", checkpoints = run + "/checkpoints";
  fs::create_directories(checkpoints);
  fs::create_symlink("step-1", checkpoints + "/step-1");
  SmallModel model;
  Checkpointer checkpointer(model.store, options_for(run), ignore);
  EXPECT_FALSE(checkpointer.restore_latest(state_at(0)));  // a cyclic link never was a checkpoint
  fs::create_symlink("/archive/step-2", checkpoints + "/step-2");
  expect_error([&] { checkpointer.restore_latest(state_at(0)); }, Fault::checkpoint,
               "no usable checkpoint in " + checkpoints + ": " + checkpoints + "/step-2 is a link that cannot be");
}

TEST(CheckpointFaults, LoopsOfLinksAreErrors) {
  const TempDirectory directory;
  const std::string run = directory / "run", other = directory / "other";
  save_steps(run, system_files(), 1, 1);
  SmallModel model;
  CheckpointOptions options = options_for(run);
  options.average = model.context->empty(model.store.values().shape());
  Checkpointer checkpointer(model.store, options, ignore);
  fs::create_directories(other);
  for (const std::string link : {"checkpoints", "MANIFEST.json"}) fs::create_symlink(link, other + "/" + link);
  expect_error([&] { newest_checkpoint(other, looks_complete); }, Fault::checkpoint,
               other + "/checkpoints: Too many levels of symbolic links");
  expect_error([&] { checkpointer.restore(other, state_at(0)); }, Fault::checkpoint,
               other + " is not the folder of a checkpoint");
  const std::string averaged = checkpoint_path(run + "/checkpoints", 1) + "/averaged.safetensors";
  fs::create_symlink("averaged.safetensors", averaged);
  EXPECT_EQ(checkpointer.restore_latest(state_at(0))->notices, std::vector{averaged + ": ignored"});
}

TEST(CheckpointFaults, ADirectoryThatCannotBeWrittenIsRefusedAtTheStart) {
  const TempDirectory directory;
  const std::string run = directory / "run";
  save_steps(run, system_files(), 1, 1);
  fs::permissions(directory.path(), fs::perms::others_exec, fs::perm_options::add);
  for (const std::string& path : {run, run + "/checkpoints"}) {
    SCOPED_TRACE(path);
    fs::remove(run + "/lock");
    fs::permissions(path, fs::perms{0555});
    EXPECT_EXIT(
        {
          if (::geteuid() == 0 && ::setuid(65534) != 0) std::exit(2);  // root may write anywhere
          SmallModel model;
          try {
            Checkpointer(model.store, options_for(run), ignore);
            std::exit(0);
          } catch (const Error& error) {
            std::cerr << error.what();
            std::exit(static_cast<int>(error.fault()));
          }
        },
        testing::ExitedWithCode(static_cast<int>(Fault::resource)), run + ".*: Permission denied");
    fs::permissions(path, fs::perms{0777});  // writable by the next round's user
  }
  EXPECT_EQ(step_found(run), 1u);
}

}  // namespace
}  // namespace dtrain
