#include "libdtrain/io/remote/s3_upload.h"

#include <algorithm>
#include <utility>

namespace dtrain::remote {

S3Upload::S3Upload(RemoteStorage& storage, S3Address address, size_t part_bytes)
    : storage_(storage), address_(std::move(address)), part_bytes_(part_bytes) {}

S3Upload::~S3Upload() {
  if (id_.empty()) return;
  try {
    storage_.s3.send({.method = "DELETE", .address = address_, .query = {{"uploadId", id_}}});
  } catch (...) {  // a bucket's lifecycle rule removes the parts
  }
}

void S3Upload::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (pending_.size() == part_bytes_) send_part();  // only now is it known not to be the last
    const size_t count = std::min(bytes.size(), part_bytes_ - pending_.size());
    pending_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
}

std::string S3Upload::finish() {
  if (id_.empty()) return storage_.s3.put(address_, pending_);
  send_part();
  return complete();
}

void S3Upload::begin() {
  const HttpAnswer answer = storage_.s3.send({.method = "POST", .address = address_, .query = {{"uploads", ""}}});
  if (answer.status != 200) fail_with(address_.text(), answer, Fault::resource);
  id_ = flat_values(answer.body, {"UploadId"})[0];
  if (id_.empty())
    throw Error(Fault::resource, concat(address_.text(), ": the server's answer to a new upload has no UploadId"));
}

void S3Upload::send_part() {
  if (id_.empty()) begin();
  if (etags_.size() == kMostUploadParts)
    throw Error(Fault::resource, concat(address_.text(), ": more than ", kMostUploadParts, " parts of ", part_bytes_,
                                        " bytes; expected a smaller object"));
  const HttpAnswer answer = storage_.s3.send({.method = "PUT",
                                              .address = address_,
                                              .query = {{"partNumber", concat(etags_.size() + 1)}, {"uploadId", id_}},
                                              .body = pending_});
  if (answer.status != 200) fail_with(address_.text(), answer, Fault::resource);
  etags_.push_back(answer.header("etag"));
  pending_.clear();
}

std::string S3Upload::complete() {
  std::string body = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags_.size(); ++i) {
    std::string tag = etags_[i];
    std::erase_if(tag, [](char c) { return c == '<' || c == '>' || c == '&'; });
    body += concat("<Part><PartNumber>", i + 1, "</PartNumber><ETag>", tag, "</ETag></Part>");
  }
  body += "</CompleteMultipartUpload>";
  // S3 may answer 200 at once and report a failure in the body.
  const AnswerCheck check = [](const HttpAnswer& got) -> std::string {
    const std::string code = error_code_in(got.body);
    return code.empty() ? "" : "the parts could not be joined" + code;
  };
  HttpAnswer answer =
      storage_.s3.send({.method = "POST", .address = address_, .query = {{"uploadId", id_}}, .body = body}, check);
  if (answer.status != 200) fail_with(address_.text(), answer, Fault::resource);
  id_.clear();
  return flat_values(answer.body, {"ETag"})[0];
}

}  // namespace dtrain::remote
