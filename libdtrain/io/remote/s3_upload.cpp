#include "libdtrain/io/remote/s3_upload.h"

#include <algorithm>
#include <utility>

#include "dtrain/io/atomic_file.h"

namespace dtrain::remote {
namespace {

constexpr const char* kMarkHeader = "x-amz-meta-dtrain-upload";

}  // namespace

S3Upload::S3Upload(RemoteStorage& storage, S3Address address, size_t part_bytes)
    : storage_(storage), address_(std::move(address)), part_bytes_(part_bytes), mark_(unique_suffix()) {}

S3Upload::~S3Upload() {
  if (id_.empty()) return;
  try {
    storage_.s3.send({.method = "DELETE", .address = address_, .query = {{"uploadId", id_}}});
  } catch (...) {  // a bucket's lifecycle rule removes the parts
  }
}

void S3Upload::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (pending_.size() == part_bytes_) send_pending();  // only now is it known not to be the last
    const size_t count = std::min(bytes.size(), part_bytes_ - pending_.size());
    pending_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
}

std::string S3Upload::finish() {
  if (id_.empty()) return storage_.s3.put(address_, pending_);
  if (!pending_.empty()) send_pending();
  return complete();
}

void S3Upload::begin() {
  const HttpAnswer answer = storage_.s3.send(
      {.method = "POST", .address = address_, .query = {{"uploads", ""}}, .headers = {{kMarkHeader, mark_}}});
  if (answer.status != 200) fail_with(address_.text(), answer, Fault::resource);
  id_ = flat_values(answer.body, {"UploadId"})[0];
  if (id_.empty())
    throw Error(Fault::resource, concat(address_.text(), ": the server's answer to a new upload has no UploadId"));
}

void S3Upload::send_pending() {
  put_part(etags_.size() + 1, pending_);
  pending_.clear();
}

void S3Upload::put_part(size_t number, std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (id_.empty()) begin();
  }
  if (number > kMostUploadParts)
    throw Error(Fault::resource, concat(address_.text(), ": more than ", kMostUploadParts, " parts of ", part_bytes_,
                                        " bytes; expected a smaller object"));
  const HttpAnswer answer = storage_.s3.send({.method = "PUT",
                                              .address = address_,
                                              .query = {{"partNumber", concat(number)}, {"uploadId", id_}},
                                              .body = bytes});
  if (answer.status != 200) fail_with(address_.text(), answer, Fault::resource);
  const std::lock_guard lock(mutex_);
  etags_[number] = answer.header("etag");
}

std::string S3Upload::complete() {
  std::string body = "<CompleteMultipartUpload>";
  for (const auto& [number, etag] : etags_) {
    std::string tag = etag;
    std::erase_if(tag, [](char c) { return c == '<' || c == '>' || c == '&'; });
    body += concat("<Part><PartNumber>", number, "</PartNumber><ETag>", tag, "</ETag></Part>");
  }
  body += "</CompleteMultipartUpload>";
  // S3 may answer 200 at once and report a failure in the body.
  const AnswerCheck check = [](const HttpAnswer& got) -> std::string {
    const std::string code = error_code_in(got.body);
    return code.empty() ? "" : "the parts could not be joined" + code;
  };
  const HttpAnswer answer =
      storage_.s3.send({.method = "POST", .address = address_, .query = {{"uploadId", id_}}, .body = body}, check);
  std::string etag;
  if (answer.status == 200)
    etag = flat_values(answer.body, {"ETag"})[0];
  else if (answer.status == 404)  // services forget an upload once it is complete: the first answer may be lost
    etag = etag_if_completed();
  if (answer.status != 200 && etag.empty()) fail_with(address_.text(), answer, Fault::resource);
  id_.clear();
  return etag;
}

std::string S3Upload::etag_if_completed() const {
  const HttpAnswer answer = storage_.s3.send({.method = "HEAD", .address = address_});
  return answer.status == 200 && answer.header(kMarkHeader) == mark_ ? answer.header("etag") : "";
}

}  // namespace dtrain::remote
