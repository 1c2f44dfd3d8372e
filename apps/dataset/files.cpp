#include "apps/dataset/files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <regex>
#include <thread>

#include "apps/cli/progress.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {

std::vector<std::string> record_files(const std::vector<std::string>& places) {
  DT_CHECK(!places.empty(), "no folder or file given; see --help");
  static const std::regex kName("[^.].*(-[0-9]+-of-[0-9]+|\\.(tfrecords?|record))(\\.gz)?");
  std::vector<std::string> files;
  for (const std::string& place : places) {
    if (!std::filesystem::is_directory(place)) {
      files.push_back(place);
      continue;
    }
    const size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(place))
      if (!entry.is_directory() && std::regex_match(entry.path().filename().string(), kName))
        files.push_back(entry.path().string());
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
    if (files.size() == before) throw Error(Fault::data, place + ": no TFRecord files (*-of-*, *.tfrecord, *.record)");
  }
  return files;
}

void for_each_file(const std::vector<std::string>& files, int64_t threads, const std::string& what,
                   const std::function<void(size_t)>& work) {
  cli::Progress progress(what, files.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  uint64_t done = 0;
  std::exception_ptr failure;
  auto run = [&] {
    for (size_t i = next++; i < files.size(); i = next++) try {
        work(i);
        std::lock_guard lock(mutex);
        progress.update(++done);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
  };
  {
    const auto count = threads > 0 ? static_cast<size_t>(threads) : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> pool;
    for (size_t i = 0; i < std::min(count, files.size()); ++i) pool.emplace_back(run);
  }
  progress.finish();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace dtrain::dataset
