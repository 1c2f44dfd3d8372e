// Tar archives, valid and damaged, and the images in them.
#include "data/tar.h"

#include <cstdlib>

#include "data/box_list.h"
#include "data/image_tar.h"
#include "tests/data/tar_files.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

class Tar : public testing::Test {
 protected:
  std::string path() const { return (folder / "a.tar").string(); }
  std::vector<TarMember> members(const std::string& bytes) const {
    write_file(path(), bytes);
    return tar_members(InputFile(path()));
  }
  void refuses(const std::string& bytes, const std::string& message) const {
    expect_error([&] { members(bytes); }, Fault::data, path() + ": " + message);
  }
  std::string bytes_of(const TarMember& member) const {
    std::string bytes(member.size, '\0');
    InputFile(path()).read(member.offset, bytes.data(), bytes.size());
    return bytes;
  }

  TempDirectory folder;
};

TEST_F(Tar, ReadsAllFormatsOfTar) {
  const std::string long_name(180, 'n'), deep = std::string(90, 'd') + "/" + std::string(80, 'e');
  std::filesystem::create_directories(folder / "in" / deep);
  const std::vector<std::string> names = {"a", "empty", "block", deep + "/f"};
  write_file(folder / "in/a", "text of a");
  write_file(folder / "in/empty", "");
  write_file(folder / "in/block", std::string(512, 'b'));
  write_file(folder / "in" / deep / "f", "deep");
  write_file(folder / "in" / long_name, "long");
  for (const char* format : {"gnu", "oldgnu", "pax", "ustar", "v7"}) {
    const bool takes_long = std::string(format) != "ustar" && std::string(format) != "v7";
    const std::string command =
        concat("cd '", (folder / "in").string(), "' && tar --format=", format, " -cf '", path(), "' a empty block ",
               std::string(format) == "v7" ? "" : "./" + deep, takes_long ? " " + long_name : "");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::vector<std::string> found;
    for (const TarMember& member : tar_members(InputFile(path()))) {
      EXPECT_EQ(bytes_of(member), read_file(folder / "in" / member.name)) << format;
      found.push_back(member.name);
    }
    ASSERT_EQ(found.size(), takes_long ? 5u : std::string(format) == "v7" ? 3u : 4u) << format;
    if (found.size() > 3) {
      EXPECT_EQ(found[3], "./" + deep + "/f") << format;
    }
    if (takes_long) {
      EXPECT_EQ(found[4], long_name) << format;
    }
  }
}

TEST_F(Tar, ReadsBinaryNumbersAndChecksBounds) {
  std::string archive = tar_of({{"x", "abc"}, {"y", "defg"}});
  EXPECT_EQ(bytes_of(members(archive).at(1)), "defg");
  std::string member = tar_member("z", "hi");
  member.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x02", 12));
  uint64_t sum = 8 * ' ';
  for (size_t i = 0; i < 512; ++i) sum += i < 148 || i >= 156 ? static_cast<uint8_t>(member[i]) : 0;
  member.replace(148, 6, fmt::format("{:06o}", sum));
  EXPECT_EQ(bytes_of(members(member + tar_end()).at(0)), "hi");
  EXPECT_TRUE(members(tar_end()).empty());
  EXPECT_TRUE(members(tar_member("folder/", "", '5') + tar_end()).empty());
}

TEST_F(Tar, InvalidArchivesAreRejectedWithOffset) {
  const std::string archive = tar_of({{"x", "abc"}, {"y", "defg"}});
  refuses("", "member at byte 0: the archive ends before its end mark: truncated");
  refuses(archive.substr(0, 1024), "member at byte 1024: the archive ends before its end mark");
  refuses(archive.substr(0, 1538),
          "member at byte 1024: 'y' of 4 bytes, but the archive ends 2 bytes after its header");
  std::string damaged = archive;
  damaged[1030] = '!';
  refuses(damaged, "member at byte 1024: the checksum of its header is wrong");
  refuses("\x1f\x8b" + archive, "member at byte 0: packed by gzip; unpack it with gunzip first");
  refuses(std::string(600, 'x'), "member at byte 0: the checksum of its header is wrong: damaged, or not a tar");
  refuses(tar_member("link", "", '2') + tar_end(), "member at byte 0: 'link' is of type '2', expected a regular file");
  refuses(tar_member("x", "99 path=a\n", 'x') + archive, "member at byte 0: its extended header is damaged");
  refuses(tar_member("x", "9 size=x\n", 'x') + archive, "member at byte 0: its extended header is damaged");
  refuses(tar_member("x", "18 size=123456789\n", 'x') + archive, "member at byte 1024: 'x' of 123456789 bytes");
}

TEST_F(Tar, ImagesHaveTheClassOfTheirArchiveOrFolder) {
  const std::string inner = tar_of({{"n2_7.JPEG", "seven"}, {"./n2_3.JPEG", "three"}, {"._n2_3.JPEG", "hidden"}});
  write_file(path(), tar_member("n2.tar", inner) + tar_of({{"train/n1/b.JPEG", "bee"}, {"./flat.JPEG", "flat"}}));
  const std::vector<TreeImage> images = images_of_tar(path());
  ASSERT_EQ(images.size(), 4u);
  std::string all;
  for (const TreeImage& image : images) {
    std::string bytes(image.bytes, '\0');
    image.archive->read(image.offset, bytes.data(), bytes.size());
    all += concat(image.synset, " ", image.filename, " ", bytes, "\n");
  }
  EXPECT_EQ(all, " flat.JPEG flat\nn1 b.JPEG bee\nn2 n2_3.JPEG three\nn2 n2_7.JPEG seven\n");
  EXPECT_EQ(images[3].path, concat(path(), ": n2.tar: n2_7.JPEG at byte 1024"));
  EXPECT_EQ(classes_of(images), (std::vector<std::string>{"", "n1", "n2"}));
  std::string warning;
  expect_error([&] { tree_record(images[3], warning); }, Fault::data,
               "a.tar: n2.tar: n2_7.JPEG at byte 1024: image of 5 bytes");
  write_file(path(), tar_member("n2.tar", inner.substr(0, 1538)) + tar_end());
  expect_error([&] { images_of_tar(path()); }, Fault::data,
               "a.tar: n2.tar: member at byte 1536: './n2_3.JPEG' of 5 bytes, but the archive ends 2 bytes after");
  write_file(path(), tar_end());
  expect_error([&] { images_of_tar(path()); }, Fault::data, "a.tar: no images in the archive");
}

TEST_F(Tar, ReadsBoxLists) {
  const std::string list = (folder / "boxes.csv").string();
  write_file(list, "a.JPEG,0.1,0.2,0.3,0.4\r\n\nb.JPEG,0,0,1,1\na.JPEG,0.5,0.5,0.5,0.75");
  const auto boxes = read_box_list(list);
  ASSERT_EQ(boxes.at("a.JPEG").size(), 2u);
  EXPECT_EQ(boxes.at("a.JPEG")[0].xmin, 0.1f);
  EXPECT_EQ(boxes.at("a.JPEG")[0].ymin, 0.2f);
  EXPECT_EQ(boxes.at("a.JPEG")[0].xmax, 0.3f);
  EXPECT_EQ(boxes.at("a.JPEG")[1].ymax, 0.75f);
  EXPECT_EQ(boxes.size(), 2u);
  for (const char* line : {"a.JPEG,0.1,0.2,0.3", "a.JPEG,0.1,0.2,0.3,0.4,0.5", "a.JPEG,0.3,0.2,0.1,0.4", ",0,0,1,1",
                           "a.JPEG,0,0,1,1.5", "a.JPEG,0,0,1,x", "a.JPEG,nan,0,1,1"}) {
    write_file(list, concat("b.JPEG,0,0,1,1\n", line, "\n"));
    expect_error([&] { read_box_list(list); }, Fault::data,
                 concat("boxes.csv: line 2: '", line, "', expected FILE,xmin,ymin,xmax,ymax"));
  }
}

}  // namespace
}  // namespace dtrain::data
