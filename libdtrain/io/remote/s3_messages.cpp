#include "libdtrain/io/remote/s3_messages.h"

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <charconv>
#include <optional>

#include "dtrain/core/error.h"
#include "libdtrain/io/xml.h"

namespace dtrain::remote {
namespace {

namespace property_tree = boost::property_tree;

// Nothing for text that is not XML or beyond the limits.
std::optional<property_tree::ptree> parse_answer(const std::string& text) {
  try {
    return parse_xml(text, "", {.most_depth = 16, .trims = false});
  } catch (const Error&) {
    return std::nullopt;
  }
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Inverse of encoding-type=url, where a space is '+' or "%20".
std::string decoded(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 && digit_of(text[i + 2]) >= 0) {
      plain += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

// Texts of the first elements of these names.
void collect(const property_tree::ptree& tree, const std::vector<std::string>& names,
             std::vector<std::string>& values) {
  for (const auto& [name, child] : tree) {
    const auto found = std::ranges::find(names, name);
    if (found != names.end())
      if (std::string& value = values[static_cast<size_t>(found - names.begin())]; value.empty()) value = child.data();
    collect(child, names, values);
  }
}

}  // namespace

S3Listing parse_listing(const std::string& text, const std::string& where) {
  const auto fail = [&](const std::string& what) {
    throw Error(Fault::data, concat(where, ": the server's list of objects ", what));
  };
  const auto tree = parse_answer(text);
  if (!tree) fail("is not XML");
  const auto result = tree->find("ListBucketResult");
  if (result == tree->not_found()) fail("has no element ListBucketResult");
  const bool encoded = result->second.get("EncodingType", "") == "url";
  const auto name_of = [&](const std::string& name) { return encoded ? decoded(name) : name; };
  S3Listing listing;
  for (const auto& [name, child] : result->second) {
    if (name == "Contents") {
      S3Object object{name_of(child.get("Key", "")), 0};
      const std::string size = child.get("Size", "");
      const auto [end, wrong] = std::from_chars(size.data(), size.data() + size.size(), object.bytes);
      if (object.key.empty() || wrong != std::errc{} || end != size.data() + size.size())
        fail("has an object without Key or Size");
      listing.objects.push_back(std::move(object));
    } else if (name == "CommonPrefixes") {
      listing.prefixes.push_back(name_of(child.get("Prefix", "")));
    }
  }
  if (result->second.get("IsTruncated", "") == "true") {
    listing.next = result->second.get("NextContinuationToken", "");
    if (listing.next.empty()) fail("is truncated, without NextContinuationToken");
  }
  return listing;
}

std::vector<std::string> flat_values(const std::string& text, const std::vector<std::string>& names) {
  std::vector<std::string> values(names.size());
  if (const auto tree = parse_answer(text)) collect(*tree, names, values);
  return values;
}

std::string error_code_in(const std::string& text) {
  const std::string code = flat_values(text, {"Code"})[0];
  const bool is_name = !code.empty() && code.size() <= 64 && std::ranges::all_of(code, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
  });
  return is_name ? concat(" (", code, ")") : "";
}

}  // namespace dtrain::remote
