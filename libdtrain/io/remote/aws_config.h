// AWS's shared files: ~/.aws/credentials and ~/.aws/config.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "libdtrain/io/remote/http_client.h"

namespace dtrain::remote {

// Sections of an INI file. Indented lines below "s3 =" have keys such as "s3.addressing_style".
using IniSections = std::map<std::string, std::map<std::string, std::string>>;
// Throws Error(Fault::config), prefixed by `where` and the line, never with its text, which may be a secret.
IniSections parse_ini(std::string_view text, const std::string& where);

// The settings of one profile.
class AwsProfile {
 public:
  // Profile AWS_PROFILE or "default", from AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE or the files in ~/.aws.
  // Throws Error(Fault::config) if AWS_PROFILE names a profile that neither file has.
  static AwsProfile read(const Variables& variables);

  const std::string& name() const { return name_; }
  // Value in the credentials file, else in the config file; empty if unset.
  const std::string& get(const std::string& key) const;

 private:
  std::string name_;
  std::map<std::string, std::string> values_;
};

// Address of a service that is not AWS's own; empty if none is set.
struct ConfiguredEndpoint {
  std::string url{}, origin{};  // origin: "AWS_ENDPOINT_URL", for messages
};
// AWS_ENDPOINT_URL_<service>, AWS_ENDPOINT_URL, or the profile's endpoint_url, unless
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is true. Throws Error(Fault::config) for a profile with `services`, a section of
// endpoints that is not read, where no variable takes precedence.
ConfiguredEndpoint configured_endpoint(const Variables& variables, const AwsProfile& profile,
                                       const std::string& service);

}  // namespace dtrain::remote
