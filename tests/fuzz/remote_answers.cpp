// Answers of object storage and of credential services, AWS's shared files, leases, manifests of checkpoints, and
// headers of cached blocks.
#include "libdtrain/io/remote/aws_config.h"
#include "libdtrain/io/remote/aws_credentials.h"
#include "libdtrain/io/remote/block_file.h"
#include "libdtrain/io/remote/lease.h"
#include "libdtrain/io/remote/remote_file.h"
#include "libdtrain/io/remote/s3_messages.h"
#include "libdtrain/train/checkpoint_objects.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const std::string text = fuzz::text_of(data, size);
  remote::error_code_in(text);
  remote::parse_content_range(text);
  remote::parse_block_header(text, {std::string(64, 'a'), 1, size_t{1} << 20});
  fuzz::expect(Fault::data, [&] { remote::parse_listing(text, "list"); });
  fuzz::expect(Fault::config, [&] { remote::parse_session_json(text, "json"); });
  fuzz::expect(Fault::config, [&] { remote::parse_session_xml(text, "xml"); });
  fuzz::expect(Fault::config, [&] { remote::parse_ini(text, "file"); });
  fuzz::expect(Fault::data, [&] { remote::parse_s3("s3://" + text, Fault::data); });
  fuzz::expect(Fault::config,
               [&] { remote::lease_from(remote::lease_text(remote::lease_from(text, "lease")), "own"); });
  fuzz::expect(Fault::checkpoint, [&] { object_manifest_from(text, "manifest"); });
  return 0;
}
