// Paths that are local or remote: s3://BUCKET/KEY, and https://HOST/PATH, read-only. InputFile opens both kinds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtrain {

// Whether the path begins with s3://, https:// or http://.
bool is_remote(const std::string& path);

// The path for outputs: of a URL without its query and user, which may be secret.
std::string shown_path(const std::string& path);

// Gives the engine, which never reads the environment itself, the variables with credentials, region, endpoint and
// certificates: AWS_*, HOME, CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR, DTRAIN_REMOTE_TIMEOUT. Call it before the
// first remote path is used, e.g. with std::getenv. Without it, requests are anonymous.
void set_remote_variables(std::function<const char*(const char* name)> variables);

// Whether a regular file, or an object, is there. False for an unreadable folder; throws Error(Fault::data) if access
// to a bucket is denied, Error(Fault::resource) if a server does not answer.
bool file_exists(const std::string& path);
// Whether a directory is there, or objects below this prefix. Throws as file_exists().
bool folder_exists(const std::string& path);
// Sorted names of files and folders in a directory, or of objects and prefixes directly below a prefix. Throws
// Error(Fault::data) if it cannot be listed: also for https://, which has no lists.
std::vector<std::string> names_in_folder(const std::string& folder);

}  // namespace dtrain
