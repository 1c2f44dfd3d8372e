// dtrain-data split: class folders DIR/CLASS/... to OUTPUT/train/CLASS/..., OUTPUT/val/CLASS/... and OUTPUT/test/...
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/cache.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/files.h"
#include "apps/dataset/new_folder.h"
#include "apps/dataset/writing.h"
#include "data/image_index.h"
#include "data/image_tree.h"
#include "data/shards.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSplits = {"train", "val", "test"};
constexpr size_t kTrain = 0, kVal = 1, kTest = 2;

struct SplitFlags {
  CommonFlags common;
  double validation = 0.2, test = 0;
  bool link_images = false;

  void declare(cli::FlagSet& flags) {
    common.takes_folder = true;
    common.declare(flags, "folder of class folders, also as an argument: DIR");
    flags.add("validation", validation, "share of each class for validation", {0, 1});
    flags.add("test", test, "share of each class for the test split", {0, 1});
    flags.add("link_images", link_images, "make symbolic links to the images instead of copies");
  }
};

// Images of one class or split; as a part of a class, files of equal bytes, which stay in one split.
using Group = std::vector<const data::IndexedFile*>;

// Groups of a class, in the order of their first files.
std::vector<Group> groups_of(const Group& files) {
  std::vector<Group> groups;
  std::map<std::pair<uint64_t, uint32_t>, size_t> known;  // by size and checksum
  for (const data::IndexedFile* file : files) {
    const auto [found, is_new] = known.emplace(std::pair(file->bytes, file->crc), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(file);
  }
  return groups;
}

// Split of each file of a class. Training keeps at least one group; another split with a share gets one while there are
// several left.
void assign(const std::string& name, const Group& files, const SplitFlags& flags, std::array<Group, 3>& splits) {
  const std::vector<Group> groups = groups_of(files);
  const uint64_t seed = static_cast<uint64_t>(flags.common.seed) << 32 | crc32c(name.data(), name.size());
  const auto wanted = [&](double share) {
    const auto images = static_cast<size_t>(std::llround(share * static_cast<double>(files.size())));
    return share > 0 ? std::max<size_t>(images, 1) : 0;
  };
  const std::array<size_t, 3> images = {0, wanted(flags.validation), wanted(flags.test)};
  std::array<size_t, 3> taken{};
  size_t left = groups.size();
  for (const uint64_t index : data::shuffled(groups.size(), seed)) {
    const Group& group = groups[index];
    size_t split = kTrain;
    for (const size_t other : {kVal, kTest})
      if (split == kTrain && left > 1 && taken[other] < images[other]) split = other;
    taken[split] += group.size();
    splits[split].insert(splits[split].end(), group.begin(), group.end());
    --left;
  }
}

class Splitter {
 public:
  explicit Splitter(const SplitFlags& flags)
      : flags_(flags), classes_(data::class_folders(flags.common.input)), folder_(flags.common.output) {
    check_classes();
    index_ = data::index_images(flags.common.input, classes_, cli::CacheFlags().options());
    if (!index_.faults.empty())
      throw Error(Fault::data, fmt::format("{}; {} such files; repair or remove them", index_.faults.front().reason,
                                           index_.faults.size()));
  }

  void write() {
    std::array<Group, 3> splits;
    std::vector<std::string> incomplete;
    std::map<std::string, Group> images = images_by_class();
    for (const std::string& name : classes_) {
      const Group& files = images[name];
      const std::array before = {splits[kTrain].size(), splits[kVal].size(), splits[kTest].size()};
      assign(name, files, flags_, splits);
      for (const size_t split : {kTrain, kVal, kTest})
        if (splits[split].size() == before[split] && (split == kTrain || share(split) > 0))
          incomplete.push_back(fmt::format("{} in {}", name, kSplits[split]));
    }
    if (splits[kTrain].empty()) throw Error(Fault::data, flags_.common.input + ": no images in its class folders");
    for (const size_t split : {kTrain, kVal, kTest}) write_split(split, splits[split]);
    folder_.commit();
    for (const size_t split : {kTrain, kVal, kTest})
      if (!splits[split].empty())
        fmt::print("{}: {} images, {}/{}\n", kSplits[split], splits[split].size(), cli::escaped(flags_.common.output),
                   kSplits[split]);
    report(incomplete);
  }

 private:
  double share(size_t split) const { return split == kVal ? flags_.validation : flags_.test; }

  void check_classes() const {
    if (classes_.empty())
      throw Error(Fault::data, flags_.common.input + ": no class folders in it; expected CLASS/IMAGE");
    for (const std::string& name : classes_)
      if (!data::split_of_folder(name).empty())
        throw Error(Fault::data, concat(flags_.common.input, ": its folder ", name,
                                        " is a split, not a class; expected CLASS/IMAGE, without splits"));
  }

  std::map<std::string, Group> images_by_class() const {
    std::map<std::string, Group> images;
    for (const data::IndexedFile& file : index_.files)
      if (file.content == data::FileContent::image) images[file.name.substr(0, file.name.find('/'))].push_back(&file);
    return images;
  }

  void write_split(size_t split, const Group& files) {
    if (files.empty()) return;
    // Empty folders keep the classes of all splits equal.
    for (const std::string& name : classes_) folder_.make(fmt::format("{}/{}", kSplits[split], name));
    for_each_index(files.size(), flags_.common.threads, fmt::format("{} images", kSplits[split]), [&](size_t i) {
      if (cli::stop_requested()) throw Error("stopped");
      const std::string source = (fs::path(flags_.common.input) / files[i]->name).string();
      const std::string name = fmt::format("{}/{}", kSplits[split], files[i]->name);
      if (flags_.link_images)
        folder_.link(name, fs::absolute(source));
      else
        folder_.write(name, read_text(source, kMaxRecordBytes));
    });
  }

  void report(const std::vector<std::string>& incomplete) const {
    constexpr size_t kNamed = 8;
    const auto others = std::ranges::count(index_.files, data::FileContent::other, &data::IndexedFile::content);
    if (others > 0 || index_.left_out > 0)
      cli::print_message("note", fmt::format("left out {} files that are no images, and {} hidden files and folders",
                                             others, index_.left_out));
    if (incomplete.empty()) return;
    const std::vector<std::string> named(
        incomplete.begin(), incomplete.begin() + static_cast<ptrdiff_t>(std::min(kNamed, incomplete.size())));
    cli::print_message("warning", fmt::format("{} times a class has no image in a split: {}{}", incomplete.size(),
                                              fmt::join(named, ", "), incomplete.size() > kNamed ? " and more" : ""));
  }

  const SplitFlags& flags_;
  std::vector<std::string> classes_;
  NewFolder folder_;
  data::ImageIndex index_{};
};

}  // namespace

int split(const Arguments& argv) {
  SplitFlags values;
  cli::FlagSet flags(argv.front(), "DIR --output DIR [flags]",
                     "Splits a folder of class folders into OUTPUT/train, OUTPUT/val and OUTPUT/test, which have the "
                     "shares of the flags of each class. Files with equal bytes in a class stay in one split. The same "
                     "seed and files give the same splits.");
  values.declare(flags);
  if (!values.common.parse(flags, argv)) return 0;
  DT_CHECK(values.validation + values.test > 0 && values.validation + values.test < 1,
           "--validation=", values.validation, " --test=", values.test,
           ": expected shares above 0 and below 1 together");
  until_stopped([&] { Splitter(values).write(); });
  return 0;
}

}  // namespace dtrain::dataset
