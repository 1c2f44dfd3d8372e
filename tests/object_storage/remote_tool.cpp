// Calls the client of object storage for the Python tests of this folder. Errors: one line on stderr, and the fault's
// number as exit code.
//     remote_tool read PATH OFFSET:SIZE...   prints the bytes
//     remote_tool prefetch PATH OFFSET:SIZE...   prefetches all ranges, then prints their bytes
//     remote_tool threads PATH SIZE          reads in blocks of this size, on eight threads; prints SHA-256
//     remote_tool list PATH                  prints names_in_folder() as JSON
//     remote_tool exists PATH                prints file_exists() and folder_exists()
//     remote_tool wait PATH                  opens, waits for a line, and reads the last 100,000 bytes
//     remote_tool records FOLDER SPLIT CACHE prints SHA-256 of all records, read back to front, and the shards
//     remote_tool weights PATH               prints SHA-256 of all tensors of a safetensors file
//     remote_tool put PATH < CONTENT         prints the ETag
//     remote_tool upload PATH SIZE < CONTENT the same, in parts of this size
//     remote_tool remove PATH
//     remote_tool cache DIR BYTES WORDS...   any of these with the disk cache; prints its counts as JSON on stderr
//     remote_tool sign                       signs the JSON requests on standard input, one a line
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "data/shard_files.h"
#include "dtrain/data/record_shards.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/remote_cache.h"
#include "dtrain/io/remote_path.h"
#include "dtrain/io/safetensors.h"
#include "libdtrain/io/remote/remote_file.h"
#include "libdtrain/io/remote/remote_storage.h"
#include "libdtrain/io/remote/s3_upload.h"
#include "libdtrain/io/remote/sigv4.h"

namespace dtrain::remote {
namespace {

std::string standard_input() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

void read_ranges(const std::string& path, const std::vector<std::string>& ranges, bool prefetch) {
  const InputFile file(path);
  if (prefetch)
    for (const std::string& range : ranges)
      file.prefetch(std::stoull(range), std::stoull(range.substr(range.find(':') + 1)));
  for (const std::string& range : ranges) {
    std::string bytes(std::stoull(range.substr(range.find(':') + 1)), '\0');
    bytes.resize(file.read_some(std::stoull(range), bytes.data(), bytes.size()));
    std::cout << bytes;
  }
}

void read_on_threads(const std::string& path, size_t block) {
  const InputFile file(path);
  std::string bytes(file.size(), '\0');
  std::atomic<uint64_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        for (uint64_t at; (at = next.fetch_add(block)) < file.size();)
          file.read(at, bytes.data() + at, std::min<uint64_t>(block, file.size() - at));
      });
  }
  std::cout << sha256_hex(bytes) << '\n';
}

void read_end_later(const std::string& path) {
  const InputFile file(path);
  std::cout << "open" << std::endl;
  std::string line, bytes(100'000, '\0');
  std::getline(std::cin, line);
  file.read(file.size() - bytes.size(), bytes.data(), bytes.size());
}

void read_records(const std::string& folder, const std::string& split, const std::string& cache) {
  const data::RecordShards shards(data::find_shards(folder, split), {.directory = cache});
  std::vector<std::byte> buffer;
  std::string hashes;
  for (uint64_t record = shards.size(); record-- > 0;) {
    const auto bytes = shards.read(record, buffer);
    hashes += sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::cout << sha256_hex(hashes) << '\n' << shards.contents();
}

void read_weights(const std::string& path) {
  const SafetensorsFile file(path, Fault::checkpoint);
  std::string hashes;
  for (const SafetensorsEntry& entry : file.entries()) {
    const std::vector<float> values = file.read_floats(entry);
    hashes += entry.name + sha256_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  std::cout << sha256_hex(hashes) << '\n';
}

void upload(const std::string& path, size_t part_bytes) {
  S3Upload to(*remote_storage(), parse_s3(path, Fault::config), part_bytes);
  to.append(standard_input());
  std::cout << to.finish() << '\n';
}

void sign_lines() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto json = nlohmann::json::parse(line);
    const std::string body = json["body"];
    SignedRequest request{.method = json["method"],
                          .host = json["host"],
                          .path = uri_encoded(std::string(json["path"]), true),
                          .query = json["query"],
                          .headers = json["headers"],
                          .body = body};
    sign(request, {json["access_key"], json["secret_key"], json["token"]}, json["region"], json["time"]);
    std::cout << nlohmann::json{{"path", request.path},
                                {"query", encoded_query(request.query)},
                                {"authorization", request.headers["authorization"]}}
              << '\n';
  }
}

void run(const std::vector<std::string>& words);

void run_with_cache(const std::vector<std::string>& words) {
  set_remote_cache({.directory = words.at(1),
                    .max_bytes = std::stoull(words.at(2)),
                    .notice = [](const std::string& text) { std::cerr << "note: " << text << '\n'; }});
  run({words.begin() + 3, words.end()});
  const RemoteCacheStats stats = remote_cache_stats();
  std::cerr << nlohmann::json{{"from_disk", stats.bytes_from_disk},
                              {"fetched", stats.bytes_fetched},
                              {"damaged", stats.damaged_blocks},
                              {"unstored", stats.unstored_blocks}}
            << '\n';
}

void run(const std::vector<std::string>& words) {
  const std::string& command = words.at(0);
  if (command == "sign") return sign_lines();
  if (command == "cache") return run_with_cache(words);
  const std::string& path = words.at(1);
  if (command == "read" || command == "prefetch")
    read_ranges(path, {words.begin() + 2, words.end()}, command == "prefetch");
  if (command == "threads") read_on_threads(path, std::stoull(words.at(2)));
  if (command == "list") std::cout << nlohmann::json(names_in_folder(path)) << '\n';
  if (command == "exists") std::cout << file_exists(path) << folder_exists(path) << '\n';
  if (command == "wait") read_end_later(path);
  if (command == "records") read_records(path, words.at(2), words.at(3));
  if (command == "weights") read_weights(path);
  if (command == "put") std::cout << remote_storage()->s3.put(parse_s3(path, Fault::config), standard_input()) << '\n';
  if (command == "upload") upload(path, std::stoull(words.at(2)));
  if (command == "remove") remote_storage()->s3.remove(parse_s3(path, Fault::config));
}

}  // namespace
}  // namespace dtrain::remote

int main(int count, char** words) {
  dtrain::set_remote_variables([](const char* name) { return std::getenv(name); });
  try {
    dtrain::remote::run({words + 1, words + count});
    return 0;
  } catch (const dtrain::Error& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(error.fault());
  }
}
