#include "libdtrain/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

constexpr size_t kChunk = size_t{64} << 10;
constexpr int kGzipWindow = 15 + 16;  // zlib: largest window, gzip format

void require_ok(int status, const char* call) {
  if (status != Z_OK) throw Error(Fault::resource, concat("zlib ", call, " failed with status ", status));
}

uInt chunk_of(size_t size) { return static_cast<uInt>(std::min(size, size_t{1} << 30)); }

}  // namespace

struct GzipReader::ZlibStream {
  z_stream z{};
  std::array<Bytef, kChunk> input;
  uint64_t position = 0;  // in the file, after `input`
  bool ended = false;     // clean end of the last member
};

GzipReader::GzipReader(const InputFile& file) : file_(file), stream_(std::make_unique<ZlibStream>()) {
  require_ok(inflateInit2(&stream_->z, kGzipWindow), "inflateInit2");
}

GzipReader::~GzipReader() { inflateEnd(&stream_->z); }

bool GzipReader::refill() {
  const size_t got = file_.read_some(stream_->position, stream_->input.data(), kChunk);
  stream_->position += got;
  stream_->z.next_in = stream_->input.data();
  stream_->z.avail_in = static_cast<uInt>(got);
  return got > 0;
}

void GzipReader::member_ended() {
  z_stream& z = stream_->z;
  if (z.avail_in == 0 && !refill())
    stream_->ended = true;
  else
    require_ok(inflateReset(&z), "inflateReset");
}

size_t GzipReader::read(void* to, size_t size) {
  z_stream& z = stream_->z;
  size_t done = 0;
  while (done < size && !stream_->ended && !fault_) {
    if (z.avail_in == 0 && !refill()) {
      fault_ = "truncated gzip stream";
      break;
    }
    z.next_out = static_cast<Bytef*>(to) + done;
    z.avail_out = chunk_of(size - done);
    const uInt offered = z.avail_out;
    const int status = inflate(&z, Z_NO_FLUSH);
    done += offered - z.avail_out;
    if (status == Z_STREAM_END)
      member_ended();
    else if (status == Z_MEM_ERROR)
      throw Error(Fault::resource, concat(file_.path(), ": no memory to unpack gzip"));
    else if (status != Z_OK && status != Z_BUF_ERROR)
      fault_ = "corrupted gzip stream";
  }
  return done;
}

struct GzipWriter::ZlibStream {
  z_stream z{};
  std::array<Bytef, kChunk> output;
};

GzipWriter::GzipWriter(AtomicFile& file) : file_(file), stream_(std::make_unique<ZlibStream>()) {
  require_ok(
      deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY),
      "deflateInit2");
}

GzipWriter::~GzipWriter() { deflateEnd(&stream_->z); }

void GzipWriter::deflate(const void* data, size_t size, bool last) {
  z_stream& z = stream_->z;
  auto at = static_cast<const Bytef*>(data);
  int status = Z_OK;
  do {
    z.next_in = const_cast<Bytef*>(at);
    z.avail_in = chunk_of(size);
    z.next_out = stream_->output.data();
    z.avail_out = kChunk;
    status = ::deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    size -= static_cast<size_t>(z.next_in - at);
    at = z.next_in;
    file_.write(stream_->output.data(), kChunk - z.avail_out);
  } while (size > 0 || z.avail_out == 0 || (last && status != Z_STREAM_END));
}

}  // namespace dtrain
