#include "libdtrain/io/remote/sigv4.h"

#include <gtest/gtest.h>

namespace dtrain::remote {
namespace {

// Examples of "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)", Amazon S3 API
// Reference.
constexpr time_t kTime = 1369353600;  // 2013-05-24T00:00:00Z
const SigningKey kKey{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};

SignedRequest request_for(const std::string& method, const std::string& path) {
  return {
      .method = method, .host = "examplebucket.s3.amazonaws.com", .path = path, .query = {}, .headers = {}, .body = {}};
}

void expect_signature(SignedRequest request, const std::string& headers, const std::string& signature) {
  sign(request, kKey, "us-east-1", kTime);
  EXPECT_EQ(request.headers["authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=" +
                headers + ", Signature=" + signature);
}

TEST(SigV4, SignsPublishedExamples) {
  SignedRequest get = request_for("GET", "/test.txt");
  get.headers = {{"range", "bytes=0-9"}};
  expect_signature(get, "host;range;x-amz-content-sha256;x-amz-date",
                   "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");

  SignedRequest put = request_for("PUT", "/" + uri_encoded("test$file.text", true));
  put.headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  put.body = "Welcome to Amazon S3.";
  expect_signature(put, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                   "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");

  SignedRequest lifecycle = request_for("GET", "/");
  lifecycle.query = {{"lifecycle", ""}};
  expect_signature(lifecycle, "host;x-amz-content-sha256;x-amz-date",
                   "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");

  SignedRequest list = request_for("GET", "/");
  list.query = {{"prefix", "J"}, {"max-keys", "2"}};
  expect_signature(list, "host;x-amz-content-sha256;x-amz-date",
                   "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(uri_encoded("aZ09-_.~/ +%=\xc3\xa9", true), "aZ09-_.~/%20%2B%25%3D%C3%A9");
  EXPECT_EQ(uri_encoded("a/b", false), "a%2Fb");
}

// Parameters are sorted by encoded name: '{' is encoded to "%7B", which precedes "a".
TEST(SigV4, SortsEncodedParameters) { EXPECT_EQ(encoded_query({{"a", "1 2"}, {"{", ""}}), "%7B=&a=1%202"); }

TEST(SigV4, SignsTheSessionToken) {
  SignedRequest request = request_for("GET", "/key");
  sign(request, {"access", "secret", "token"}, "us-east-1", kTime);
  EXPECT_EQ(request.headers["x-amz-security-token"], "token");
  EXPECT_NE(request.headers["authorization"].find(";x-amz-security-token,"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::remote
