#include "dtrain/io/remote_path.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "dtrain/io/file_system.h"
#include "libdtrain/io/remote/remote_file.h"
#include "libdtrain/io/remote/remote_storage.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 1'000'000;

bool is_s3(const std::string& path) { return path.starts_with("s3://"); }

}  // namespace

bool is_remote(const std::string& path) {
  return is_s3(path) || path.starts_with("https://") || path.starts_with("http://");
}

std::string shown_path(const std::string& path) { return is_remote(path) ? remote::shown(path) : path; }

bool file_exists(const std::string& path) {
  std::error_code unreadable;
  if (!is_remote(path)) return fs::is_regular_file(path, unreadable);
  const auto storage = remote::remote_storage();
  // Answers to HEAD have no body, and thus no code, such as of an expired token or a clock that is wrong.
  std::array<char, 1> first{};
  remote::HttpAnswer answer;
  if (is_s3(path)) {
    answer = storage->s3.send(
        {.address = remote::parse_s3(path, Fault::data), .headers = {{"range", "bytes=0-0"}}, .into = first});
  } else {
    remote::require_web_address(path, Fault::data);
    answer = storage->http.send({.url = path, .headers = {"Range: bytes=0-0"}, .into = first, .follow_redirects = true},
                                storage->policy);
  }
  if (answer.status == 404) return false;
  // An empty file has no first byte; some servers send the whole file.
  if (answer.status / 100 == 2 || answer.status == 416 || answer.too_long) return true;
  remote::fail_with(remote::shown(path), answer, Fault::data);
}

bool folder_exists(const std::string& path) {
  std::error_code unreadable;
  if (!is_remote(path)) return fs::is_directory(path, unreadable);
  if (!is_s3(path)) return false;
  const remote::S3Address address = remote::parse_s3(path, Fault::data, /*is_folder=*/true);
  const remote::HttpAnswer answer = remote::remote_storage()->s3.send(
      {.address = {address.bucket, ""}, .query = {{"list-type", "2"}, {"max-keys", "1"}, {"prefix", address.key}}});
  if (answer.status != 200) remote::fail_with(address.text(), answer, Fault::data);
  return !remote::parse_listing(answer.body, address.text()).objects.empty();
}

std::vector<std::string> names_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  if (is_s3(folder)) {
    const remote::S3Address address = remote::parse_s3(folder, Fault::data, /*is_folder=*/true);
    const remote::S3Listing listing = remote::remote_storage()->s3.list(address, "/", kMostNames, Fault::data);
    for (const remote::S3Object& object : listing.objects) names.push_back(object.key.substr(address.key.size()));
    for (const std::string& prefix : listing.prefixes)
      names.push_back(prefix.substr(address.key.size(), prefix.size() - address.key.size() - 1));
    std::erase(names, "");  // an object that stands for the folder itself
  } else if (is_remote(folder)) {
    throw Error(Fault::data, concat(remote::shown(folder),
                                    ": a web server has no list of files; expected a folder or s3://BUCKET/PREFIX"));
  } else {
    std::error_code failure;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure))
      names.push_back(entry->path().filename().string());
    if (failure)
      throw Error(fault_of_errno(failure.value(), Fault::data),
                  concat(folder, ": cannot list the directory: ", failure.message()));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace dtrain
