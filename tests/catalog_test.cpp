// How many files know a data set or a model by name. What another one takes is in CONTRIBUTING.md, and is no more.
#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using Paths = std::set<std::string>;

// The sources of the libraries and of the programs that hold `word`, in whatever case.
Paths files_that_name(const std::string& word) {
  const fs::path root = source_dir();
  Paths paths;
  for (const char* folder : {"libdtrain", "models", "data", "apps"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      std::string text = read_file(entry.path().string());
      std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
      if (text.find(word) != std::string::npos) paths.insert(fs::relative(entry.path(), root).string());
    }
  return paths;
}

TEST(Catalog, ADataSetIsKnownToItsEntryItsOwnFilesAndItsModels) {
  const Paths own{"data/cifar.h", "data/cifar.cpp"};  // preprocessing, binary batches
  const Paths command{"apps/dataset/cifar10.cpp",     // from what is downloaded to records
                      "apps/dataset/commands.h", "apps/dataset/main.cpp"};
  const Paths models{"models/resnet.h", "models/resnet.cpp", "models/small.cpp"};  // those with a form for it
  Paths expected{"data/catalog.cpp"};
  for (const Paths& paths : {own, command, models}) expected.insert(paths.begin(), paths.end());
  EXPECT_EQ(files_that_name("cifar"), expected);
}

TEST(Catalog, AFamilyOfModelsIsKnownToItsOwnFilesAndTheCatalogue) {
  const Paths expected{"models/catalog.cpp", "models/vgg.h", "models/vgg.cpp",
                       "apps/scale/published.cpp"};  // what others have measured with it
  EXPECT_EQ(files_that_name("vgg"), expected);
}

}  // namespace
}  // namespace dtrain
