#include "libdtrain/io/remote/s3_messages.h"

#include "tests/testing.h"

namespace dtrain::remote {
namespace {

TEST(S3Messages, ReadsAList) {
  const S3Listing listing = parse_listing(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name><Prefix/>"
      "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>1=/+</"
      "NextContinuationToken>"
      "<Contents><Key>a+b%2B%25%E6%97%A5</Key><ETag>&quot;1&quot;</ETag><Size>12</Size></Contents>"
      "<Contents><Key>c</Key><Size>0</Size></Contents>"
      "<CommonPrefixes><Prefix>d%2F</Prefix></CommonPrefixes></ListBucketResult>",
      "s3://bucket");
  ASSERT_EQ(listing.objects.size(), 2u);
  EXPECT_EQ(listing.objects[0].key, "a b+%\xe6\x97\xa5");
  EXPECT_EQ(listing.objects[0].bytes, 12u);
  EXPECT_EQ(listing.prefixes, std::vector<std::string>{"d/"});
  EXPECT_EQ(listing.next, "1=/+");
}

TEST(S3Messages, DecodesKeysOnlyIfTheServerEncodesThem) {
  const S3Listing listing =
      parse_listing("<ListBucketResult><Contents><Key>a+%41</Key><Size>1</Size></Contents></ListBucketResult>", "");
  EXPECT_EQ(listing.objects.at(0).key, "a+%41");
}

TEST(S3Messages, RefusesOtherAnswers) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a b='/>'>";
  const std::string begin = "<ListBucketResult><Contents><Key>a</Key>", end = "</Contents></ListBucketResult>";
  const std::string no_size = "s3://b: the server's list of objects has an object without Key or Size";
  const std::pair<std::string, std::string> cases[] = {
      {"<html><body>Welcome", "s3://b: the server's list of objects is not XML"},
      {deep, "s3://b: the server's list of objects is not XML"},
      {"<!DOCTYPE a [<!ENTITY b 'c'>]><ListBucketResult/>", "s3://b: the server's list of objects is not XML"},
      {"<Error/>", "s3://b: the server's list of objects has no element ListBucketResult"},
      {begin + end, no_size},
      {begin + "<Size>-1</Size>" + end, no_size},
      {begin + "<Size>1e3</Size>" + end, no_size},
      {begin + "<Size>99999999999999999999</Size>" + end, no_size},
      {"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
       "s3://b: the server's list of objects is truncated, without NextContinuationToken"},
  };
  for (const auto& [text, message] : cases)
    expect_error([&, body = text] { parse_listing(body, "s3://b"); }, Fault::data, message);
}

TEST(S3Messages, NamesTheCodeOfAnError) {
  EXPECT_EQ(error_code_in("<Error><Code>NoSuchKey</Code><Message>secret</Message></Error>"), " (NoSuchKey)");
  EXPECT_EQ(error_code_in("<Error><Code>No\nsuch</Code></Error>"), "");
  EXPECT_EQ(error_code_in("<html>"), "");
  EXPECT_EQ(error_code_in(""), "");
}

}  // namespace
}  // namespace dtrain::remote
