// Checkpoints across a power failure: synced data survives, the rest in part.
#include <functional>
#include <map>
#include <random>

#include "dtrain/io/atomic_file.h"
#include "tests/files.h"
#include "tests/testing.h"
#include "tests/train/checkpoint_fixture.h"

namespace dtrain {
namespace {

// Fate of unsynced data.
enum class Forgetting {
  everything,  // all lost
  data,        // names survive, file contents do not
  random,      // each directory at any state since its last sync, each file truncated or zeroed anywhere
};

// Executes calls on the real disk and records them; write_image() creates the tree left by a power failure after the
// first `calls` of them.
class ForgetfulDisk : public FileSystem {
 public:
  explicit ForgetfulDisk(std::string root) : root_(std::move(root)) {}

  int create(const std::string& path) override;
  ssize_t write(int fd, const void* data, size_t size) override;
  int sync(int fd) override;
  int close(int fd) override;
  int rename(const std::string& from, const std::string& to) override;
  int unlink(const std::string& path) override;
  int make_directory(const std::string& path) override;
  int remove_directory(const std::string& path) override;
  int sync_directory(const std::string& path) override;

  size_t calls() const { return log_.size(); }
  void write_image(const std::string& target, size_t calls, Forgetting forgetting, std::mt19937& random) const;

 private:
  struct Node;
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  struct Node {
    bool directory = false;
    std::string data;
    size_t synced = 0;                 // bytes of a file
    std::vector<Entries> history{{}};  // states of a directory since its last sync, current one last
  };
  using Call = std::function<void(Node& root)>;

  Node& find(Node& root, const std::string& path) const;
  void change(Node& root, const std::string& path, const std::function<void(Entries&, const std::string&)>& edit) const;
  void remove_name(const std::string& path);
  static void write_node(const Node& node, const std::string& target, Forgetting forgetting, std::mt19937& random);

  std::string root_;
  std::vector<Call> log_;
  std::map<int, std::string> open_;  // names at creation; open files are not renamed
};

ForgetfulDisk::Node& ForgetfulDisk::find(Node& root, const std::string& path) const {
  Node* node = &root;
  for (const auto& part : std::filesystem::path(path).lexically_relative(root_))
    if (part != ".") node = node->history.back().at(part).get();
  return *node;
}

void ForgetfulDisk::change(Node& root, const std::string& path,
                           const std::function<void(Entries&, const std::string&)>& edit) const {
  Node& directory = find(root, directory_of(path));
  Entries next = directory.history.back();
  edit(next, std::filesystem::path(path).filename());
  directory.history.push_back(next);
}

void ForgetfulDisk::remove_name(const std::string& path) {
  log_.push_back([this, path](Node& root) {
    change(root, path, [](Entries& entries, const std::string& name) { entries.erase(name); });
  });
}

int ForgetfulDisk::create(const std::string& path) {
  const int fd = FileSystem::create(path);
  if (fd >= 0) {
    open_[fd] = path;
    log_.push_back([this, path](Node& root) {
      change(root, path, [](Entries& entries, const std::string& name) { entries[name] = std::make_shared<Node>(); });
    });
  }
  return fd;
}

ssize_t ForgetfulDisk::write(int fd, const void* data, size_t size) {
  const ssize_t written = FileSystem::write(fd, data, size);
  const std::string bytes(static_cast<const char*>(data), static_cast<size_t>(written));
  log_.push_back([this, path = open_.at(fd), bytes](Node& root) { find(root, path).data += bytes; });
  return written;
}

int ForgetfulDisk::sync(int fd) {
  log_.push_back([this, path = open_.at(fd)](Node& root) {
    Node& file = find(root, path);
    file.synced = file.data.size();
  });
  return FileSystem::sync(fd);
}

int ForgetfulDisk::close(int fd) {
  open_.erase(fd);
  return FileSystem::close(fd);
}

int ForgetfulDisk::rename(const std::string& from, const std::string& to) {
  DT_CHECK(directory_of(from) == directory_of(to), "the model knows no rename between directories");
  log_.push_back([this, from, to](Node& root) {
    change(root, from, [&](Entries& entries, const std::string& name) {
      entries[std::filesystem::path(to).filename()] = entries.at(name);
      entries.erase(name);
    });
  });
  return FileSystem::rename(from, to);
}

int ForgetfulDisk::unlink(const std::string& path) {
  remove_name(path);
  return FileSystem::unlink(path);
}

int ForgetfulDisk::make_directory(const std::string& path) {
  if (path != root_) {
    log_.push_back([this, path](Node& root) {
      change(root, path, [](Entries& entries, const std::string& name) {
        entries[name] = std::make_shared<Node>();
        entries[name]->directory = true;
      });
    });
  }
  return FileSystem::make_directory(path);
}

int ForgetfulDisk::remove_directory(const std::string& path) {
  remove_name(path);
  return FileSystem::remove_directory(path);
}

int ForgetfulDisk::sync_directory(const std::string& path) {
  if (path.starts_with(root_)) {
    log_.push_back([this, path](Node& root) {
      Node& directory = find(root, path);
      directory.history = {directory.history.back()};
    });
  }
  return FileSystem::sync_directory(path);
}

void ForgetfulDisk::write_node(const Node& node, const std::string& target, Forgetting forgetting,
                               std::mt19937& random) {
  if (!node.directory) {
    std::string data = node.data;
    if (forgetting == Forgetting::random && random() % 2) {
      std::fill(data.begin() + static_cast<std::ptrdiff_t>(node.synced), data.end(), '\0');
    } else {
      const size_t loose = node.data.size() - node.synced;
      data.resize(node.synced + (forgetting == Forgetting::random && loose ? random() % loose : 0));
    }
    write_file(target, data);
    return;
  }
  std::filesystem::create_directory(target);
  const size_t latest = node.history.size() - 1;
  const size_t point = forgetting == Forgetting::everything ? 0
                       : forgetting == Forgetting::data     ? latest
                                                            : random() % (latest + 1);
  for (const auto& [name, child] : node.history[point]) write_node(*child, target + "/" + name, forgetting, random);
}

void ForgetfulDisk::write_image(const std::string& target, size_t calls, Forgetting forgetting,
                                std::mt19937& random) const {
  Node root;
  root.directory = true;
  for (size_t i = 0; i < calls; ++i) log_[i](root);
  write_node(root, target, forgetting, random);
}

// Power failure after any call; unsynced data survives randomly.
TEST(CheckpointFaults, PowerLossAnywhere) {
  const TempDirectory directory;
  ForgetfulDisk disk(directory / "run");
  save_steps(directory / "run", disk, 1, 1);
  const size_t first_saved = disk.calls();
  save_steps(directory / "run", disk, 2, 3);
  std::mt19937 random(4);
  int survivors = 0;
  for (size_t calls = 0; calls <= disk.calls(); ++calls) {
    for (const Forgetting forgetting : {Forgetting::everything, Forgetting::data, Forgetting::random}) {
      const std::string image = directory / "image";
      std::filesystem::remove_all(image);
      disk.write_image(image, calls, forgetting, random);
      const uint64_t found = step_found(image);
      if (calls >= first_saved) {
        ASSERT_GE(found, 1u) << "after " << calls << " calls";
        ++survivors;
      }
    }
  }
  EXPECT_GT(survivors, 60);
  EXPECT_EQ(step_found(directory / "run"), 3u);
}

}  // namespace
}  // namespace dtrain
