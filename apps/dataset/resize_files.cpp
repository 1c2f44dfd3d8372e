#include "apps/dataset/resize_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/files.h"
#include "data/file_tree.h"
#include "dtrain/core/error.h"
#include "dtrain/data/bad_record.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/file_lock.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// Downscales image folders: writes all images to a temporary folder first, so that an incomplete run leaves the output
// unchanged, even in place.
class ResizedFiles {
 public:
  ResizedFiles(const CommonFlags& common, const data::ShrinkOptions& options)
      : common_(common), options_(options), files_(data::files_below(common.input)) {
    if (files_.empty()) throw Error(Fault::data, common.input + ": neither TFRecord shards nor images in it");
  }
  ~ResizedFiles() { remove_staged(); }
  ResizedFiles(const ResizedFiles&) = delete;
  ResizedFiles& operator=(const ResizedFiles&) = delete;

  // Returns the exit code.
  int run() {
    if (!lists()) stage();
    for_each_index(files_.size(), common_.threads, "images", [this](size_t i) {
      if (cli::stop_requested()) throw Error("stopped");
      try {
        shrink(files_[i]);
      } catch (const data::BadRecordError& error) {
        const std::lock_guard lock(mutex_);
        bad_[""].push_back(error.record());
      }
    });
    const std::vector<data::BadRecord> bad = data::all_of(bad_);
    warnings_.report();
    if (!lists() && (bad.empty() || common_.on_bad_image == "skip")) put_in_place(bad.size());
    const int code = report_bad_images(common_, bad, files_.size(), is_in_place() ? "left as they were" : "left out");
    if (common_.on_bad_image == "fail" && !bad.empty())
      throw Error(Fault::data, fmt::format("{} of {} images cannot be used, and nothing is written; repair or remove "
                                           "them, or skip them with --on_bad_image=skip",
                                           bad.size(), files_.size()));
    return code;
  }

 private:
  bool lists() const { return common_.on_bad_image == "list"; }
  bool is_in_place() const {
    std::error_code unknown;
    return fs::equivalent(common_.input, common_.output, unknown);
  }
  fs::path folder() const { return fs::path(common_.output) / ".resized.new"; }
  fs::path staged() const { return folder() / "files"; }

  // Only for the process that holds the lock.
  void remove_staged() const {
    std::error_code unknown;
    if (lock_) fs::remove_all(folder(), unknown);
  }

  void stage() {
    make_directories(system_files(), common_.output);
    data::require_no_linked_folders(common_.output, files_);
    std::error_code unknown;
    DT_CHECK(!fs::is_symlink(folder(), unknown), folder().string(),
             ": is a link, expected a folder of unfinished images; move it away");
    make_directories(system_files(), folder().string());
    lock_.emplace((folder() / "lock").string());
    fs::remove_all(staged(), unknown);  // left by a killed run
    make_directories(system_files(), staged().string());
  }

  void shrink(const fs::path& file) {
    const std::string from = (fs::path(common_.input) / file).string();
    data::ShrunkImage image;
    try {
      const std::string bytes = read_text(from, kMaxRecordBytes);
      image = data::shrink_image(std::as_bytes(std::span(bytes)), options_);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      throw data::BadRecordError(from, error.what());
    }
    if (!image.damage.empty()) throw data::BadRecordError(from, data::damaged_image(image.damage));
    warnings_.add(from, image.warning);
    if (lists()) return;
    const fs::path to = staged() / file;
    make_directories(system_files(), to.parent_path().string());
    AtomicFile out(to.string());
    out.write(image.jpeg.data(), image.jpeg.size());
    out.commit(/*durable=*/false);
  }

  // New files (none for bad images) and their destinations.
  std::vector<std::pair<fs::path, fs::path>> moves() const {
    std::vector<std::pair<fs::path, fs::path>> all;
    std::error_code unknown;
    for (const fs::path& file : files_)
      if (fs::exists(staged() / file, unknown)) all.emplace_back(staged() / file, fs::path(common_.output) / file);
    return all;
  }

  // Checks in advance that moving file by file cannot fail midway.
  static void require_places(const std::vector<std::pair<fs::path, fs::path>>& moves) {
    std::set<fs::path> folders;
    std::error_code unknown;
    for (const auto& [from, to] : moves) {
      DT_CHECK(!fs::is_directory(to, unknown), to.string(), ": is a folder, expected an image or nothing");
      if (!folders.insert(to.parent_path()).second) continue;
      make_directories(system_files(), to.parent_path().string());
      require_success(::faccessat(AT_FDCWD, to.parent_path().c_str(), W_OK | X_OK, AT_EACCESS), "write to",
                      to.parent_path().string());
    }
  }

  // rename() replaces a link, not its target.
  void put_in_place(size_t skipped) {
    const std::vector<std::pair<fs::path, fs::path>> moved = moves();
    require_places(moved);
    const fs::path list = fs::path(common_.output) / data::kSkippedFile;
    std::error_code unknown;
    if (common_.on_bad_image == "skip" || fs::exists(list, unknown)) {
      AtomicFile out(list.string());
      out.write(data::to_json(bad_));
      out.commit(/*durable=*/false);
    }
    for (const auto& [from, to] : moved)
      require_success(system_files().rename(from.string(), to.string()), "rename to", to.string());
    fmt::print("{} images in {}\n", files_.size() - skipped, cli::escaped(common_.output));
  }

  const CommonFlags& common_;
  const data::ShrinkOptions& options_;
  const std::vector<fs::path> files_;
  std::optional<FileLock> lock_;
  std::mutex mutex_;
  data::SkippedRecords bad_;
  KeptWarnings warnings_;
};

}  // namespace

int resize_files(const CommonFlags& common, const data::ShrinkOptions& options) {
  int code = 0;
  until_stopped([&] { code = ResizedFiles(common, options).run(); });
  return code;
}

}  // namespace dtrain::dataset
