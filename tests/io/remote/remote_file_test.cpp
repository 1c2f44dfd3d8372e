#include "libdtrain/io/remote/remote_file.h"

#include "libdtrain/io/remote/read_window.h"
#include "tests/testing.h"

namespace dtrain::remote {
namespace {

TEST(RemoteFile, ReadsContentRange) {
  const auto range = parse_content_range("bytes 10-19/30");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 10u);
  EXPECT_EQ(range->last, 19u);
  EXPECT_EQ(range->total, 30u);
  EXPECT_EQ(parse_content_range("bytes */0")->total, 0u);
  EXPECT_EQ(parse_content_range("bytes 0-9/*")->total, std::nullopt);
  for (const char* text : {"", "bytes", "bytes 9-0/10", "bytes 0-10/10", "bytes 0-9/10 ", "bytes 0-9", "items 0-9/10",
                           "bytes -1-9/10", "bytes 0-99999999999999999999/10"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

TEST(RemoteFile, ParsesAddresses) {
  const S3Address address = parse_s3("s3://my-bucket/a/b c%41", Fault::data);
  EXPECT_EQ(address.bucket, "my-bucket");
  EXPECT_EQ(address.key, "a/b c%41");
  EXPECT_EQ(parse_s3("s3://my-bucket", Fault::data, true).key, "");
  EXPECT_EQ(parse_s3("s3://my-bucket/a", Fault::data, true).key, "a/");
  EXPECT_EQ(parse_s3("s3://my-bucket/a/", Fault::data, true).text(), "s3://my-bucket/a/");
}

TEST(RemoteFile, ShowsNeitherQueryNorUser) {
  EXPECT_EQ(shown("https://host/a?X-Amz-Signature=secret"), "https://host/a?...");
  EXPECT_EQ(shown("https://user:secret@host/a@b?c@d"), "https://...@host/a@b?...");
  EXPECT_EQ(shown("https://user:secret@host"), "https://...@host");
  EXPECT_EQ(shown("https://host/a@b"), "https://host/a@b");
  EXPECT_EQ(shown("s3://bucket/a?b"), "s3://bucket/a?b");
}

std::shared_ptr<const ReadWindow> window(uint64_t offset, size_t bytes) {
  return std::make_shared<const ReadWindow>(ReadWindow{offset, std::vector<char>(bytes)});
}

TEST(ReadWindows, DropsTheLeastRecentlyUsed) {
  ReadWindows windows(100);
  windows.keep(1, window(0, 40));
  windows.keep(2, window(10, 40));
  EXPECT_TRUE(windows.find(1, 39));
  EXPECT_FALSE(windows.find(1, 40));
  EXPECT_FALSE(windows.find(2, 9));
  windows.keep(3, window(0, 40));
  EXPECT_FALSE(windows.find(2, 10));
  EXPECT_TRUE(windows.find(1, 0));
  EXPECT_EQ(windows.bytes(), 80u);
  windows.keep(1, window(40, 20));
  EXPECT_EQ(windows.bytes(), 60u);
  windows.drop(1);
  windows.drop(1);
  EXPECT_EQ(windows.bytes(), 40u);
}

// A window larger than the limit serves the read that fetched it.
TEST(ReadWindows, KeepTheNewestAtAnySize) {
  ReadWindows windows(100);
  windows.keep(1, window(0, 40));
  windows.keep(2, window(0, 200));
  EXPECT_TRUE(windows.find(2, 199));
  EXPECT_EQ(windows.bytes(), 200u);
}

}  // namespace
}  // namespace dtrain::remote
