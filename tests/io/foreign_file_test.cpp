// Wrong file types given as weights: description and advice.
#include "libdtrain/io/foreign_file.h"

#include "dtrain/io/array_file.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr char kLfsPointer[] =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d1"
    "7e2393\nsize 12345\n";

TEST(ForeignFile, IsNamedForWhatItIs) {
  const TempDirectory folder;
  const std::string path = (folder / "model.safetensors").string();
  const struct {
    std::string bytes;
    const char *what, *way_out;
  } cases[] = {{kLfsPointer, "a Git LFS pointer", "git lfs pull"},
               {"<!DOCTYPE html>\n<html><body>404</body></html>", "an HTML page", "download"},
               {"\xef\xbb\xbf\r\n <HTML lang=\"en\">", "an HTML page", "download"},
               {std::string("\x89HDF\r\n\x1a\n\0\0\0\0", 12), "an HDF5 file", "safetensors"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    write_file(path, one.bytes);
    for (const std::string part : {one.what, one.way_out}) {
      expect_error([&] { ArrayFile file(path, Fault::checkpoint); }, Fault::checkpoint, part);
      expect_error([&] { SafetensorsFile file(path); }, Fault::data, part);
    }
  }
}

TEST(ForeignFile, AllOthersAreLeftToTheirReaders) {
  for (const std::string bytes : {"", "<", "version 2", "\x80", "<svg", "{}"}) {
    EXPECT_EQ(foreign_content(bytes), "");
    EXPECT_EQ(foreign_weights(bytes), "");
  }
  // The size of a header may resemble the start of a pickle.
  EXPECT_EQ(foreign_weights(std::string("\x80\x02\0\0\0\0\0\0{\"a\"", 12)), "");
  EXPECT_EQ(foreign_weights(std::string("\x1f\x8b\0\0\0\0\0\0{\"a\"", 12)), "");
  EXPECT_EQ(foreign_content("PK\x03\x04"), "a zip archive; unpack it with unzip first");
  EXPECT_EQ(foreign_weights("PK\x03\x04"), "");  // NumPy archives
  EXPECT_EQ(foreign_weights("\x1f\x8b\x08"), "packed by gzip; unpack it with gunzip first");
}

TEST(UnwrappedNames, TakeOnePrefixAfterTheOtherAway) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(unwrapped_names("module._orig_mod.conv.weight"), (Names{"_orig_mod.conv.weight", "conv.weight"}));
  EXPECT_EQ(unwrapped_names("model.conv.weight"), Names{"conv.weight"});
  for (const char* name : {"conv.weight", "module.", "modules.weight", ""}) EXPECT_TRUE(unwrapped_names(name).empty());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "module.";
  EXPECT_EQ(unwrapped_names(many + "x").size(), 4u);
}

}  // namespace
}  // namespace dtrain
