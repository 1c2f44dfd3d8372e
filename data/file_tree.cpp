#include "data/file_tree.h"

#include <algorithm>
#include <map>
#include <set>

#include "data/image_tree.h"
#include "dtrain/core/error.h"
#include "dtrain/data/bad_record.h"
#include "dtrain/io/file_system.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

// A folder may be reached by many links; nested folders of links have exponentially many paths.
constexpr int kMaxVisits = 64;

class FileTree {
 public:
  FileTree(const std::string& root, const FolderProblem& problem) : root_(root), problem_(problem) {}

  std::vector<fs::path> files() {
    list({});
    std::ranges::sort(files_);
    return std::move(files_);
  }

  uint64_t left_out() const { return left_out_; }

 private:
  // `inner`: path relative to the root.
  void list(const fs::path& inner) {
    const std::string folder = inner.empty() ? root_ : (fs::path(root_) / inner).string();
    fs::path real;
    try {
      real = fs::canonical(folder);
      if (around_.contains(real)) return report(folder, "is a link to ", real.string(), ", which holds it; remove it");
      if (inner.empty()) real_root_ = real;
      const bool is_by_link = !inner.empty() && real != real_root_ / inner;
      if (is_by_link && ++visits_[real] > kMaxVisits)
        return report(folder, "leads to ", real.string(), ", as ", kMaxVisits, " other links do; remove some");
      around_.insert(real);
      for (const auto& entry : fs::directory_iterator(folder)) take(entry, inner);
    } catch (const fs::filesystem_error& error) {
      problem_(folder, Error(fault_of_errno(error.code().value(), Fault::data),
                             concat(folder, ": cannot be listed: ", error.code().message())));
    }
    around_.erase(real);
  }

  template <class... Parts>
  void report(const std::string& folder, const Parts&... parts) const {
    problem_(folder, Error(Fault::data, concat(folder, ": ", parts...)));
  }

  void take(const fs::directory_entry& entry, const fs::path& inner) {
    const std::string name = entry.path().filename().string();
    std::error_code unknown;
    if (is_left_out(name)) ++left_out_;
    if (is_left_out(name) || (inner.empty() && name == kSkippedFile)) return;
    if (entry.is_directory(unknown))
      list(inner / name);
    else
      files_.push_back(inner / name);
  }

  const std::string root_;
  uint64_t left_out_ = 0;
  const FolderProblem& problem_;
  fs::path real_root_;
  std::vector<fs::path> files_;
  std::set<fs::path> around_;  // the folder and its parents, with links resolved
  std::map<fs::path, int> visits_;
};

}  // namespace

std::vector<fs::path> files_below(const std::string& folder, const FolderProblem& problem, uint64_t* left_out) {
  FileTree tree(folder, problem);
  std::vector<fs::path> files = tree.files();
  if (left_out != nullptr) *left_out += tree.left_out();
  return files;
}

std::vector<fs::path> files_below(const std::string& folder) {
  return files_below(folder, [](const std::string&, const Error& error) { throw Error(error); });
}

void require_no_linked_folders(const std::string& root, const std::vector<fs::path>& files) {
  std::set<fs::path> folders;
  for (const fs::path& file : files)
    for (fs::path inner = file.parent_path(); !inner.empty() && folders.insert(inner).second;
         inner = inner.parent_path()) {
      std::error_code unknown;
      const fs::path folder = fs::path(root) / inner;
      DT_CHECK(!fs::is_symlink(folder, unknown), folder.string(),
               ": is a link to a folder elsewhere, which would be written to; give another --output");
    }
}

}  // namespace dtrain::data
