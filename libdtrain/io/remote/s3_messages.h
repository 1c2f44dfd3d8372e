// XML answers of S3 and STS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::remote {

struct S3Object {
  std::string key;
  uint64_t bytes = 0;
};

// An answer of ListObjectsV2.
struct S3Listing {
  std::vector<S3Object> objects{};
  std::vector<std::string> prefixes{};  // up to the delimiter, which they end with
  std::string next{};                   // continuation token; empty on the last page
};

// Throws Error(Fault::data), prefixed by `where`, for an answer that is not well-formed, nested more than 16 times, or
// without the expected elements. Keys were requested with encoding-type=url.
S3Listing parse_listing(const std::string& text, const std::string& where);

// Texts of the first elements of these names, in whatever depth; empty for those that are absent, or if the text is not
// XML. For small answers.
std::vector<std::string> flat_values(const std::string& text, const std::vector<std::string>& names);

// " (NoSuchKey)" for an XML answer with a Code of letters, else empty. The Message is left out: it may quote the
// request, with its keys.
std::string error_code_in(const std::string& text);

}  // namespace dtrain::remote
