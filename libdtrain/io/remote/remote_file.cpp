#include "libdtrain/io/remote/remote_file.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

#include "libdtrain/io/remote/remote_storage.h"
#include "libdtrain/io/remote/sigv4.h"

namespace dtrain::remote {
namespace {

constexpr uint64_t kLeastAhead = uint64_t{64} << 10, kMostAhead = uint64_t{16} << 20;  // bytes of a window
constexpr uint64_t kPart = uint64_t{4} << 20;                                          // bytes of one ranged GET
constexpr size_t kConnections = 8;                                                     // of one large read

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

bool is_bucket_name(std::string_view name) {
  return name.size() >= 3 && name.size() <= 255 && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '_';
         });
}

bool take_number(std::string_view& text, uint64_t& value) {
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

S3Address parse_s3(const std::string& text, Fault fault, bool is_folder) {
  const std::string rest = text.substr(std::min(text.size(), std::string_view("s3://").size()));
  const size_t slash = std::min(rest.find('/'), rest.size());
  S3Address address{rest.substr(0, slash), rest.substr(std::min(slash + 1, rest.size()))};
  if (is_folder && !address.key.empty() && !address.key.ends_with('/')) address.key += '/';
  if (!is_bucket_name(address.bucket) || (address.key.empty() && !is_folder))
    throw Error(fault,
                concat(text, ": expected s3://BUCKET/KEY, with a bucket of 3 to 255 letters, digits, '-', '.' or '_'"));
  return address;
}

void require_web_address(const std::string& address, Fault fault) {
  const size_t begin = address.find("://") + 3, end = std::min(address.find_first_of("/?#", begin), address.size());
  if (end == begin || address.find('@', begin) < end || address.find_first_of(" \r\n") != address.npos)
    throw Error(fault, concat(shown(address), ": expected https://HOST/PATH, percent-encoded, without a user"));
}

std::string shown(const std::string& address) {
  if (address.starts_with("s3://")) return address;
  const size_t query = std::min(address.find('?'), address.size());
  std::string text = address.substr(0, query) + (query < address.size() ? "?..." : "");
  const size_t begin = text.find("://") + 3, at = text.rfind('@', text.find_first_of("/#", begin));
  if (at != text.npos && at >= begin) text.replace(begin, at - begin, "...");
  return text;
}

std::optional<ByteRange> parse_content_range(const std::string& text) {
  std::string_view rest = text;
  ByteRange range;
  if (!take(rest, "bytes ")) return std::nullopt;
  if (!take(rest, "*") && (!take_number(rest, range.first) || !take(rest, "-") || !take_number(rest, range.last) ||
                           range.last < range.first))
    return std::nullopt;
  if (!take(rest, "/")) return std::nullopt;
  if (!take(rest, "*")) {
    uint64_t total = 0;
    if (!take_number(rest, total) || (total > 0 && range.last >= total)) return std::nullopt;
    range.total = total;
  }
  return rest.empty() ? std::optional(range) : std::nullopt;
}

RemoteFile::RemoteFile(const std::string& address, Fault fault)
    : storage_(remote_storage()),
      address_(address),
      shown_(shown(address)),
      fault_(fault),
      s3_(address.starts_with("s3://") ? std::optional(parse_s3(address, fault)) : std::nullopt),
      id_(next_id()) {
  if (!s3_) require_web_address(address, fault);
  open();
  use_cache();
}

RemoteFile::~RemoteFile() {
  storage_->prefetched.drop(id_);
  storage_->windows.drop(id_);
}

void RemoteFile::fail(const HttpAnswer& answer) const {
  if (answer.too_long)
    throw Error(fault_, concat(shown_, ": the server ignores ranges of bytes; download the file, and give its path"));
  fail_with(shown_, answer, fault_);
}

HttpAnswer RemoteFile::get(uint64_t first, std::span<char> into, const AnswerCheck& check, bool once) const {
  const std::string range = concat("bytes=", first, "-", first + into.size() - 1);
  if (s3_) {
    S3Request request{.address = *s3_, .headers = {{"range", range}}, .into = into, .once = once};
    if (!etag_.empty()) request.headers["if-match"] = etag_;
    return storage_->s3.send(request, check);
  }
  // No If-Match: servers that redirect to others may know another ETag.
  const HttpRequest request{.url = address_, .headers = {"Range: " + range}, .into = into, .follow_redirects = true};
  RetryPolicy policy = storage_->policy;
  if (once) policy.attempts = 1;
  return storage_->http.send(request, policy, check);
}

void RemoteFile::open() {
  const auto window = std::make_shared<ReadWindow>();
  window->bytes.resize(kLeastAhead);
  const auto check = [&](const HttpAnswer& answer) -> std::string {
    if (answer.status == 200) return "";  // the whole of a small file
    const auto range = parse_content_range(answer.header("content-range"));
    const bool right = range && range->first == 0 && range->total && answer.received == range->last + 1 &&
                       answer.received == std::min(kLeastAhead, *range->total);
    return right ? "" : "the server sends another range of bytes than requested";
  };
  const HttpAnswer answer = get(0, window->bytes, check);
  if (answer.status == 416) {
    const auto range = parse_content_range(answer.header("content-range"));
    // Servers need not say that the file is empty, but nothing else has no first byte.
    if (!range || !range->total || *range->total == 0) return;
  }
  if (answer.status != 200 && answer.status != 206) fail(answer);
  size_ = answer.status == 200 ? answer.received : *parse_content_range(answer.header("content-range"))->total;
  etag_ = answer.header("etag");
  modified_ = answer.header("last-modified");
  window->bytes.resize(answer.received);
  end_ = answer.received;
  ahead_ = kLeastAhead;
  if (answer.received > 0) storage_->windows.keep(id_, window);
}

int64_t RemoteFile::revision() const {
  uint64_t value = 0;
  const std::string digits = sha256_hex(concat(etag_, "\n", modified_, "\n", size_)).substr(0, 15);
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return static_cast<int64_t>(value);
}

uint64_t RemoteFile::bytes_to_fetch(uint64_t offset, uint64_t wanted) const {
  const std::lock_guard lock(mutex_);
  // As the kernel's read-ahead: it doubles while reads go forward by little, and starts anew after a jump.
  const bool sequential = offset >= end_ && offset - end_ <= ahead_;
  ahead_ = sequential ? std::min(2 * ahead_, kMostAhead) : kLeastAhead;
  const uint64_t bytes = std::min(std::max(wanted, ahead_), size_ - offset);
  end_ = offset + bytes;
  return bytes;
}

size_t RemoteFile::read_some(uint64_t offset, void* to, size_t size) const {
  if (offset >= size_) return 0;
  size = static_cast<size_t>(std::min<uint64_t>(size, size_ - offset));
  ReadWindows& windows = storage_->windows;
  const std::span<char> out(static_cast<char*>(to), size);
  if (storage_->prefetched.take(id_, offset, out)) return size;
  for (size_t done = 0; done < size;) {
    const uint64_t at = offset + done;
    std::shared_ptr<const ReadWindow> window = windows.find(id_, at);
    if (!window) {
      const uint64_t bytes = bytes_to_fetch(at, size - done);
      if (bytes <= size - done) {
        fetch(at, out.subspan(done), /*once=*/false);
        break;
      }
      const auto fetched = std::make_shared<ReadWindow>(ReadWindow{at, std::vector<char>(bytes)});
      fetch(at, fetched->bytes, /*once=*/false);
      windows.keep(id_, fetched);
      window = fetched;
    }
    const size_t begin = at - window->offset, count = std::min(size - done, window->bytes.size() - begin);
    std::memcpy(out.data() + done, window->bytes.data() + begin, count);
    done += count;
  }
  return size;
}

void RemoteFile::prefetch(uint64_t offset, size_t size) const {
  if (offset >= size_ || size == 0) return;
  size = static_cast<size_t>(std::min<uint64_t>(size, size_ - offset));
  if ((cached_ && cached_->has(offset, size)) || storage_->windows.find(id_, offset, size)) return;
  storage_->prefetched.add(id_, offset, size,
                           [this, offset](std::span<char> into) { fetch(offset, into, /*once=*/true); });
}

void RemoteFile::use_cache() {
  const std::shared_ptr<DiskCache> cache = remote_disk_cache();
  // A weak ETag may be that of files with other bytes.
  if (!cache || size_ == 0 || etag_.empty() || etag_.starts_with("W/")) return;
  cached_ = std::make_unique<const CachedFile>(
      cache, concat(s3_ ? storage_->s3.endpoint() : "", "\n", address_, "\n", etag_), size_,
      [this](uint64_t offset, std::span<char> into, bool once) { fetch_part(offset, into, once); });
}

void RemoteFile::fetch(uint64_t offset, std::span<char> into, bool once) const {
  const uint64_t unit = cached_ ? kBlockBytes : kPart, first = cached_ ? offset / unit * unit : offset;
  std::vector<ReadPart> parts;
  for (uint64_t at = offset; at < offset + into.size();) {
    const uint64_t end = std::min(first + ((at - first) / unit + 1) * unit, offset + into.size());
    const ReadPart part{at, into.subspan(at - offset, end - at)};
    if (!cached_ || !cached_->read(part.offset, part.into)) parts.push_back(part);
    at = end;
  }
  if (!parts.empty()) fetch_parts(parts, once);
}

void RemoteFile::fetch_parts(const std::vector<ReadPart>& parts, bool once) const {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (size_t i; (i = next++) < parts.size() && !failed;) try {
        if (cached_)
          cached_->read_or_fetch(parts[i].offset, parts[i].into, once);
        else
          fetch_part(parts[i].offset, parts[i].into, once);
      } catch (...) {
        failed = true;
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (size_t i = 1; i < std::min(parts.size(), kConnections); ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: fewer connections
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

void RemoteFile::fetch_part(uint64_t offset, std::span<char> into, bool once) const {
  bool replaced = false;
  const HttpAnswer answer = get(
      offset, into,
      [&](const HttpAnswer& got) -> std::string {
        const auto range = parse_content_range(got.header("content-range"));
        const uint64_t total = got.status == 200 ? got.received : range && range->total ? *range->total : size_;
        replaced = total != size_ || got.header("etag") != etag_ || got.header("last-modified") != modified_;
        if (replaced) return "";
        const bool whole = got.status == 200 && offset == 0 && got.received == into.size();
        const bool right = got.status == 206 && range && range->first == offset &&
                           range->last == offset + into.size() - 1 && got.received == into.size();
        return whole || right ? "" : "the server sends another range of bytes than requested";
      },
      once);
  if (replaced || (answer.too_long && !etag_.empty() && answer.header("etag") != etag_))
    throw Error(fault_,
                concat(shown_, ": was replaced since it was opened; start again, when all its files are in place"));
  if (answer.status != 200 && answer.status != 206) fail(answer);
}

}  // namespace dtrain::remote
