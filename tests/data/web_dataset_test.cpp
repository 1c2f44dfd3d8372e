// WebDataset archives: grouping of members, labels, faults, splits, and the index between runs.
#include "data/web_dataset.h"

#include <fstream>

#include <fmt/format.h>

#include "data/tar_samples.h"
#include "dtrain/data/catalog.h"
#include "tests/data/image_folder_fixture.h"
#include "tests/data/tar_files.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

using TarFiles = std::vector<std::pair<std::string, std::string>>;

class WebDataset : public testing::Test {
 protected:
  std::string place(const std::string& name, const std::string& bytes) const {
    fs::create_directories((root / name).parent_path());
    write_file((root / name).string(), bytes);
    return (root / name).string();
  }
  TarSamples read(const std::string& bytes) const { return read_tar_samples(InputFile(place("a.tar", bytes))); }
  TarSamples read(const TarFiles& members) const { return read(tar_of(members)); }
  // "LABEL KEY" of each sample.
  static Lines lines_of(const TarSamples& samples) {
    Lines lines;
    for (const TarSample& one : samples.samples) lines.push_back(fmt::format("{} {}", one.label, one.key));
    return lines;
  }
  static void expect_fault(const TarSamples& samples, const std::string& part) {
    ASSERT_EQ(samples.faults.size(), 1u) << part;
    EXPECT_TRUE(contains(samples.faults[0], part)) << samples.faults[0];
  }
  // One sample per label.
  std::string archive(const Lines& labels, const std::string& begin = "s") const {
    TarFiles members;
    for (size_t i = 0; i < labels.size(); ++i) {
      members.emplace_back(fmt::format("{}{}.jpg", begin, i), numbered_jpeg(static_cast<int>(i)));
      members.emplace_back(fmt::format("{}{}.cls", begin, i), labels[i]);
    }
    return tar_of(members);
  }

  TempDirectory root, cache;
};

TEST_F(WebDataset, KeysAreThoseOfThePackage) {
  const auto key = [](const char* name) {
    const auto found = tar_key(name);
    return found ? found->key + "|" + found->extension : "";
  };
  EXPECT_EQ(key("a/b/1.JPG"), "a/b/1|jpg");
  EXPECT_EQ(key("./1.seg.png"), "./1|seg.png");
  EXPECT_EQ(key("a.b/1.cls"), "a.b/1|cls");
  for (const char* name : {"a/b/1", "README", ".x.jpg", "a/.DS_Store", "__meta__/1.jpg", "__index__"})
    EXPECT_EQ(key(name), "") << name;
  EXPECT_EQ(key("__index__.json"), "__index__|json");
}

TEST_F(WebDataset, GroupsConsecutiveMembers) {
  const TarSamples samples = read({{"b/1.cls", " 7\n"},
                                   {"b/1.jpg", "one"},
                                   {"b/1.txt", "more"},
                                   {"a/1.json", "{\"label\": 3, \"w\": 40}"},
                                   {"a/._1.jpg", "mac"},
                                   {"a/1.webp", "two"},
                                   {"2.jpeg", "no"},
                                   {"2.png", "yes"},
                                   {"2.cls", "0"},
                                   {"text.txt", "t"},
                                   {"README", "r"}});
  EXPECT_EQ(lines_of(samples), (Lines{"7 b/1", "3 a/1", "0 2"}));
  EXPECT_EQ(samples.samples[2].bytes, 2u) << "the jpeg goes first";
  EXPECT_EQ(samples.without_image, 1u);
  EXPECT_TRUE(samples.faults.empty()) << samples.faults.front();
}

TEST_F(WebDataset, NamesSamplesWithoutLabel) {
  const TarFiles good = {{"1.jpg", "x"}, {"1.cls", "1"}};
  const auto with = [&](const TarFiles& more) {
    TarFiles all = good;
    all.insert(all.end(), more.begin(), more.end());
    const TarSamples samples = read(all);
    EXPECT_EQ(lines_of(samples), Lines{"1 1"});
    return samples;
  };
  expect_fault(with({{"2.jpg", "x"}}), "a.tar: sample 2: no .cls and no .json");
  expect_fault(with({{"2.jpg", "x"}, {"2.cls", "cat"}}), "sample 2: its .cls is not an integer");
  expect_fault(with({{"2.jpg", "x"}, {"2.cls", std::string(100, '0')}}),
               "sample 2: its .cls has 100 bytes, expected at most 64");
  expect_fault(with({{"2.jpg", "x"}, {"2.json", "{\"label\": \"1\"}"}}),
               "sample 2: its .json has no integer \"label\"");
  expect_fault(with({{"2.jpg", "x"}, {"2.json", "{\"label\": 18446744073709551615}"}}),  // 2^64 - 1
               "sample 2: its .json has no integer \"label\"");
  expect_fault(with({{"2.jpg", "x"}, {"2.json", "[1]"}}), "sample 2: its .json has no integer \"label\"");
  expect_fault(with({{"2.jpg", "x"}, {"2.json", "{"}}), "sample 2: its .json: ");
  expect_fault(with({{"2.jpg", "x"}, {"2.cls", "1"}, {"2.cls", "2"}}), "sample 2: two members .cls");
  // A sample that is split by directories is two.
  const TarSamples split = with({{"a/2.jpg", "x"}, {"b/2.cls", "1"}});
  expect_fault(split, "sample a/2: no .cls and no .json");
  EXPECT_EQ(split.without_image, 1u);
}

TEST_F(WebDataset, ReadsLongNamesAndSkipsLinks) {
  const std::string name(150, 'n');
  const std::string samples =
      tar_member("././@LongLink", name + ".jpg" + std::string(1, '\0'), 'L') + tar_member("short.jpg", "x") +
      tar_member("PaxHeader", fmt::format("164 path={}.cls\n", name), 'x') + tar_member("short.cls", "4") +
      tar_member("link.jpg", "", '2') + tar_member("hard.jpg", "", '1') + tar_member("fifo", "", '6');
  const TarSamples found = read(samples + tar_end());
  EXPECT_EQ(lines_of(found), Lines{"4 " + name});
  EXPECT_EQ(found.links, 2u);
  const auto stored = tar_index_from(tar_index_body(found, 10'000, 7), 10'000, 7);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->links, 2u);
  std::string notice;
  open_web_dataset({.data = (root / "a.tar").string(), .notice = [&](const std::string& line) { notice = line; }});
  EXPECT_TRUE(contains(notice, "left out 2 links, with the images that they stand for")) << notice;
}

TEST_F(WebDataset, TruncatedArchivesKeepTheirFirstSamples) {
  const std::string whole = archive({"1", "2", "3"});
  const TarSamples all = read(whole);
  ASSERT_EQ(all.samples.size(), 3u);
  for (size_t size = 0; size < whole.size() - 512; size += 100) {
    const TarSamples cut = read(whole.substr(0, size));
    ASSERT_FALSE(cut.faults.empty()) << size;
    ASSERT_LE(cut.samples.size(), 3u);
    for (size_t i = 0; i < cut.samples.size(); ++i) EXPECT_EQ(cut.samples[i], all.samples[i]);
  }
  EXPECT_EQ(read(whole.substr(0, whole.size() - 1024)).samples, all.samples);
}

TEST_F(WebDataset, FindsArchivesOfSplits) {
  const auto found = [&](const std::string& data, bool training) {
    Lines names;
    for (const std::string& path : find_tars(data, training)) names.push_back(fs::relative(path, root.path()).string());
    return names;
  };
  for (const char* name : {"folders/train/b.tar", "folders/train/a.tar", "folders/val/c.tar", "names/in-train-2.tar",
                           "names/in-train-10.tar", "names/in-val-0.tar", "one/0.tar", "one/1.tar"})
    place(name, archive({"1"}));
  const std::string folders = (root / "folders").string(), names = (root / "names").string(),
                    one = (root / "one").string();
  EXPECT_EQ(found(folders, true), (Lines{"folders/train/a.tar", "folders/train/b.tar"}));
  EXPECT_EQ(found(folders, false), Lines{"folders/val/c.tar"});
  EXPECT_EQ(found(names, true), (Lines{"names/in-train-10.tar", "names/in-train-2.tar"}));
  EXPECT_EQ(found(names, false), Lines{"names/in-val-0.tar"});
  EXPECT_EQ(found(one, true), (Lines{"one/0.tar", "one/1.tar"}));
  EXPECT_EQ(found(one + "/{1..0}.tar", false), (Lines{"one/1.tar", "one/0.tar"}));
  for (const std::string& data : {folders, names, one, one + "/{0..1}.tar"}) EXPECT_TRUE(has_tars(data)) << data;
  EXPECT_TRUE(has_tars_of_one_split(one));
  EXPECT_TRUE(has_tars_of_one_split(one + "/{0..1}.tar"));
  EXPECT_FALSE(has_tars_of_one_split(folders));
  EXPECT_FALSE(has_tars_of_one_split(names));
  EXPECT_FALSE(has_tars((root / "none").string()));
  EXPECT_EQ(find_tars("s3://bucket/{0..1}.tar", true), (Lines{"s3://bucket/0.tar", "s3://bucket/1.tar"}));
  EXPECT_TRUE(has_tars("https://host/0.tar"));
  EXPECT_FALSE(has_tars("https://host/folder"));
  fs::remove(root / "names/in-val-0.tar");
  expect_error([&] { find_tars(names, false); }, Fault::data, "names: no .tar files of validation; expected ");
  expect_error([&] { open_web_dataset({.data = one + "/{0..2}.tar"}); }, Fault::data, "one/2.tar");
}

TEST_F(WebDataset, IsADataSet) {
  place("train/0.tar", archive({"0", "2"}, "x"));
  place("train/1.tar", archive({"1"}, "y"));
  Lines notices;
  const auto dataset = open_split({.size = 16}, {.directory = root.path().string(),
                                                 .classes = 3,
                                                 .label_offset = 1,
                                                 .notice = [&](const std::string& line) { notices.push_back(line); }});
  EXPECT_EQ(notices, Lines{(root / "train").string() + ": 3 samples in 2 archives"});
  EXPECT_EQ(dataset->shard_begins(), (std::vector<uint64_t>{0, 2, 3}));
  EXPECT_TRUE(contains(dataset->locate(2).text(), "train/1.tar: sample y0 at byte 512")) << dataset->locate(2).text();
  const Batch batch = make_batch(dataset->layout(), 1);
  dataset->reader()->read(2, {.sample = 2}, Row(batch, 0));
  EXPECT_EQ(batch["labels"].data<int32_t>()[0], 2);
  expect_error([&] { dataset->reader()->read(1, {.sample = 1}, Row(batch, 0)); }, Fault::data,
               "the label is 2, expected -1 to 1 (3 classes, label offset 1)");
  place("train/1.tar", archive({"1", "1"}, "y"));
  EXPECT_NE(open_split({.size = 16}, {.directory = root.path().string()})->identity(), dataset->identity());
}

TEST_F(WebDataset, IdentityCoversLabels) {
  const auto identity = [&](const std::string& bytes) {
    return open_web_dataset({.data = place("a.tar", bytes)})->identity();
  };
  const std::string one = identity(archive({"1", "2"}));
  EXPECT_TRUE(contains(one, " bytes, checksum ")) << one;
  EXPECT_EQ(identity(archive({"1", "2"})), one);
  EXPECT_NE(identity(archive({"2", "1"})), one);
}

TEST_F(WebDataset, IndexIsKeptAndMadeAgain) {
  const std::string path = place("a.tar", archive({"1", "2"})), index = (root / ".a.tar.dtidx").string();
  const auto open = [&] { return open_tar_samples(InputFile(path), (cache / "c").string()).samples; };
  const auto samples = open();
  ASSERT_EQ(samples.size(), 2u);
  const std::string good = read_file(index), body = good.substr(0, good.size() - 4);
  const auto modified = fs::last_write_time(path);
  std::string other = archive({"1", "3"});
  std::ofstream(path, std::ios::binary) << other;
  fs::last_write_time(path, modified);
  EXPECT_EQ(open(), samples) << "from the index, by size and time";
  fs::last_write_time(path, modified + std::chrono::seconds(1));
  EXPECT_EQ(open()[1].label, 3);
  for (size_t at = 0; at < good.size(); at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    write_file(index, bad);
    EXPECT_EQ(open()[1].label, 3) << at;
  }
  for (size_t size = 0; size < body.size(); ++size) EXPECT_FALSE(tar_index_from(body.substr(0, size), 0, 0)) << size;
  place("a.tar", archive({"1", "cat"}));
  fs::remove(index);
  EXPECT_EQ(open().size(), 1u);
  EXPECT_FALSE(fs::exists(index)) << "of an archive with faults";
}

TEST_F(WebDataset, DamageIsFoundWhenRead) {
  const std::string path = place("a.tar", archive({"1"}));
  const auto source = open_web_dataset({.data = path});
  std::vector<std::byte> buffer;
  EXPECT_EQ(source->read(0, buffer).size(), numbered_jpeg(0).size());
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(600).put('x');
  expect_error([&] { source->read(0, buffer); }, Fault::data, "the CRC-32C of the image is not that of the index");
  place("b.tar", tar_of({{"x.txt", "text"}}));
  expect_error([&] { open_web_dataset({.data = (root / "b.tar").string()}); }, Fault::data,
               "b.tar: no samples KEY.jpg with KEY.cls");
}

}  // namespace
}  // namespace dtrain::data
