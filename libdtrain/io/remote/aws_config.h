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

}  // namespace dtrain::remote
