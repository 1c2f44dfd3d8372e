#include "libdtrain/io/remote/aws_config.h"

#include "libdtrain/io/remote/aws_credentials.h"
#include "tests/testing.h"

namespace dtrain::remote {
namespace {

TEST(AwsConfig, ReadsSections) {
  const IniSections sections = parse_ini(
      "# comment\r\n[default]\r\nregion = eu-west-1 \r\n\n[profile a b]\nkey=x=y\ns3 =\n    addressing_style = path\n"
      "    max_queue_size = 1\noutput = json\n; end",
      "config");
  EXPECT_EQ(sections.at("default"), (std::map<std::string, std::string>{{"region", "eu-west-1"}}));
  EXPECT_EQ(sections.at("profile a b"), (std::map<std::string, std::string>{{"key", "x=y"},
                                                                            {"s3", ""},
                                                                            {"s3.addressing_style", "path"},
                                                                            {"s3.max_queue_size", "1"},
                                                                            {"output", "json"}}));
}

TEST(AwsConfig, NamesTheLineButNotItsText) {
  const std::pair<const char*, const char*> cases[] = {
      {"[default]\nSECRET", "f: line 2: expected NAME = VALUE or [SECTION]"},
      {"[default]\n=SECRET", "f: line 2: expected NAME = VALUE or [SECTION]"},
      {"\n\n[SECRET", "f: line 3: expected ']' after the name of the section"},
      {"a = SECRET", "f: line 1: expected a section, such as [default], before the first value"},
  };
  for (const auto& [text, message] : cases)
    expect_error([&, body = text] { parse_ini(body, "f"); }, Fault::config, message);
}

TEST(AwsCredentials, ReadsAnswers) {
  const AwsSession json = parse_session_json(
      R"({"AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C", "Expiration": "2026-11-30T17:00:00Z", "Code": 1})",
      "s");
  EXPECT_EQ(json.key.access_key + json.key.secret_key + json.key.session_token, "ABC");
  EXPECT_EQ(json.expires, 1796058000);
  const AwsSession xml = parse_session_xml(
      "<a><b><AccessKeyId>A</AccessKeyId><SecretAccessKey>B</SecretAccessKey><SessionToken>C</SessionToken></b></a>",
      "s");
  EXPECT_EQ(xml.key.access_key + xml.key.secret_key + xml.key.session_token, "ABC");
  EXPECT_EQ(xml.expires, std::nullopt);
  for (const char* text : {"", "[]", "{}", R"({"AccessKeyId": 1, "SecretAccessKey": "SECRET"})", "{SECRET"})
    expect_error([&] { parse_session_json(text, "s"); }, Fault::config,
                 "AWS credentials: s: expected JSON with AccessKeyId and SecretAccessKey");
}

TEST(AwsCredentials, ReadsTimes) {
  EXPECT_EQ(parse_utc("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(parse_utc("1970-01-02T00:00:01.75Z"), 86401);
  for (const char* text : {"", "1970-01-02", "1970-01-02T00:00:01+01:00", "soon"})
    EXPECT_EQ(parse_utc(text), std::nullopt);
}

}  // namespace
}  // namespace dtrain::remote
