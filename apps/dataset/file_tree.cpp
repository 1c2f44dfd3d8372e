#include "apps/dataset/file_tree.h"

#include <algorithm>
#include <set>

#include "data/bad_record.h"
#include "data/image_tree.h"
#include "libdtrain/core/error.h"
#include "libdtrain/io/file_system.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// `around`: the folder and those that hold it, without links in their paths.
void list_below(const fs::path& root, const fs::path& inner, std::set<fs::path>& around, std::vector<fs::path>& files) {
  const fs::path folder = root / inner, real = fs::canonical(folder);
  if (!around.insert(real).second)
    throw Error(Fault::data, concat(folder.string(), ": is a link to ", real.string(), ", which holds it; remove it"));
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (data::is_left_out(name) || (inner.empty() && name == data::kSkippedFile)) continue;
    if (entry.is_directory())
      list_below(root, inner / name, around, files);
    else
      files.push_back(inner / name);
  }
  around.erase(real);
}

}  // namespace

std::vector<fs::path> files_below(const std::string& folder) try {
  std::vector<fs::path> files;
  std::set<fs::path> around;
  list_below(folder, {}, around, files);
  std::ranges::sort(files);
  return files;
} catch (const fs::filesystem_error& error) {
  throw Error(
      fault_of_errno(error.code().value(), Fault::data),
      concat(error.path1().empty() ? folder : error.path1().string(), ": cannot be listed: ", error.code().message()));
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

}  // namespace dtrain::dataset
