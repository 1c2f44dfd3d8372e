#include "apps/dataset/files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <regex>
#include <thread>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/progress.h"
#include "dtrain/data/idx.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/file_system.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/core/cores.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

bool is_data_file(const std::string& name, bool idx) {
  return has_record_name(name) || (idx && data::has_idx_name(name));
}

void list_data_files(const fs::path& folder, bool idx, std::vector<std::string>& files) try {
  if (is_remote(folder.string())) {
    for (const std::string& name : names_in_folder(folder.string()))
      if (is_data_file(name, idx)) files.push_back((folder / name).string());
    return;
  }
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); !entry.is_directory() && is_data_file(name, idx))
      files.push_back(entry.path().string());
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              folder.string() + ": cannot be listed: " + error.code().message());
}

// Files of a data set, in its folder or its splits' folders.
std::vector<std::string> data_files_of(const std::string& folder, bool idx) {
  std::vector<std::string> files;
  list_data_files(folder, idx, files);
  for (const char* split : {"train", "validation", "val", "valid", "test"}) {
    const fs::path inner = fs::path(folder) / split;
    if (folder_exists(inner.string())) list_data_files(inner, idx, files);
  }
  if (files.empty())
    throw Error(Fault::data,
                concat(folder, ": no TFRecord files ", idx ? "and no IDX files " : "",
                       "in it (*-of-*, *.tfrecord, *.tfrecords, *.record", idx ? ", *-idx*-ubyte" : "", ")"));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool has_record_name(const std::string& name) {
  static const std::regex kName("[^.].*(-[0-9]+-of-[0-9]+|\\.(tfrecords?|record))(\\.gz)?");
  return std::regex_match(name, kName);
}

void for_each_index(size_t count, int64_t threads, const std::string& what, const std::function<void(size_t)>& work) {
  std::optional<cli::Progress> progress;
  if (!what.empty()) progress.emplace(what, count);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  uint64_t done = 0;
  std::exception_ptr failure;
  auto run = [&] {
    for (size_t i = next++; i < count; i = next++) try {
        work(i);
        std::lock_guard lock(mutex);
        ++done;
        if (progress) progress->update(done);
      } catch (...) {
        next = count;
        std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
  };
  {
    const auto most = static_cast<size_t>(threads > 0 ? threads : usable_cores());
    std::vector<std::jthread> pool;
    for (size_t i = 0; i < std::min(most, count); ++i) pool.emplace_back(run);
  }
  if (failure) std::rethrow_exception(failure);
  if (progress) progress->finish();
}

std::optional<DataFiles> parse_data_files(const Arguments& argv, const std::string& about, bool idx,
                                          const std::function<void(cli::FlagSet&)>& declare) {
  DataFiles files;
  cli::FlagSet flags(argv.front(), "DIR|FILE... [flags]", about);
  flags.add("threads", files.threads, "worker threads, one file each; 0: one per core", cli::kThreads);
  if (declare) declare(flags);
  const auto places = cli::read_command_line(flags, argv);
  if (!places) return std::nullopt;
  DT_CHECK(!places->empty(), "no folder or file given; see --help");
  for (const std::string& place : *places) {
    if (!folder_exists(place)) {  // a path that cannot be examined fails when it is opened
      files.paths.push_back(place);
      continue;
    }
    const std::vector<std::string> found = data_files_of(place, idx);
    for (const std::string& path : found) files.folders.insert(directory_of(path));
    files.paths.insert(files.paths.end(), found.begin(), found.end());
  }
  return files;
}

bool is_idx_file(const std::string& path) { return data::has_idx_name(fs::path(path).filename().string()); }

std::string existing_folder(const std::string& root, std::initializer_list<const char*> names) {
  std::error_code unreadable;
  for (const char* name : names)
    if (const fs::path folder = fs::path(root) / name; fs::is_directory(folder, unreadable)) return folder.string();
  return "";
}

int report(const std::vector<std::optional<Error>>& errors) {
  int code = 0;
  for (const std::optional<Error>& error : errors) {
    if (!error) continue;
    cli::print_message("error", error->what());
    if (code == 0) code = static_cast<int>(error->fault());
  }
  return code;
}

std::vector<std::optional<Error>> DataFiles::for_each(const std::function<void(size_t)>& work) const {
  std::vector<std::optional<Error>> errors(paths.size());
  for_each_index(paths.size(), threads, paths.size() > 1 ? "files" : "", [&](size_t i) {
    try {
      work(i);
    } catch (const Error& error) {
      errors[i] = error;
    }
  });
  return errors;
}

}  // namespace dtrain::dataset
