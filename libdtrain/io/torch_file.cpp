#include "dtrain/io/torch_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "dtrain/io/input_file.h"
#include "dtrain/io/safetensors.h"
#include "libdtrain/io/element_types.h"
#include "libdtrain/io/torch_tensors.h"
#include "libdtrain/io/torch_types.h"
#include "libdtrain/io/zip.h"

namespace dtrain {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kZipMember = "PK\3\4";
// The form before PyTorch 1.6 begins with pickles of this number and of 1001, its version.
constexpr std::string_view kLegacyMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;
constexpr std::string_view kLegacyVersion = "\x80\x02M\xe9\x03."sv;
constexpr std::string_view kPickleEnd = "/data.pkl";
constexpr uint64_t kLargestPickle = uint64_t{256} << 20;  // of a ZIP archive, without the tensors' data
constexpr size_t kMostStorages = 1 << 18, kMostInflations = 16;
constexpr size_t kChunkElements = 1 << 16;

bool is_dense(const StoredTensor& tensor) {
  int64_t expected = 1;
  for (int i = tensor.shape.rank(); i-- > 0; expected *= tensor.shape[i])
    if (tensor.shape[i] > 1 && tensor.strides[static_cast<size_t>(i)] != expected) return false;
  return true;
}

// Elements in row-major order; `stored` begins with the tensor's first element.
std::string row_major(std::string stored, const StoredTensor& tensor) {
  if (is_dense(tensor)) return stored;
  const size_t size = tensor.bytes_of_element;
  std::string result(static_cast<size_t>(tensor.shape.count()) * size, '\0');
  std::vector<int64_t> at(static_cast<size_t>(tensor.shape.rank()), 0);
  uint64_t from = 0;
  for (size_t to = 0; to < result.size(); to += size) {
    std::memcpy(result.data() + to, stored.data() + from * size, size);
    for (size_t i = at.size(); i-- > 0;) {
      const auto stride = static_cast<uint64_t>(tensor.strides[i]);
      from += stride;
      if (++at[i] < tensor.shape[static_cast<int>(i)]) break;
      from -= static_cast<uint64_t>(at[i]) * stride;
      at[i] = 0;
    }
  }
  return result;
}

}  // namespace

struct TorchFile::Content {
  struct Storage {
    uint64_t offset = 0;         // in the file; of a deflated member the compressed bytes
    uint64_t elements = 0;       // in a file of the form before 1.6
    size_t member = 0;           // of an archive
    bool reads_by_parts = true;  // false for a deflated member, and before the checksum is verified
  };

  Content(const std::string& file_path, Fault file_fault) : file(file_path, file_fault), fault(file_fault) {}

  [[noreturn]] void fail(const std::string& what) const { throw Error(fault, concat(file.path(), ": ", what)); }
  [[noreturn]] void fail(const StoredTensor& tensor, const std::string& what) const {
    fail(concat("tensor ", tensor.name, ": ", what));
  }

  void open() {
    std::string begin(kLegacyMagic.size() + kLegacyVersion.size(), '\0');
    begin.resize(file.read_some(0, begin.data(), begin.size()));
    if (begin.starts_with(kZipMember))
      open_archive();
    else if (begin.starts_with(kLegacyMagic))
      open_legacy(begin);
    else
      open_pickle();
    for (const StoredTensor& tensor : state.tensors) {
      entries.push_back({tensor.name, tensor.dtype, tensor.shape});
      by_name.emplace(tensor.name, &tensor);
    }
  }

  // --- NAME/data.pkl and NAME/data/KEY ---
  void open_archive() {
    zip.emplace(file.path(), fault);
    const auto& members = zip->members();
    const auto found =
        std::ranges::find_if(members, [](const ZipMember& one) { return one.name.ends_with(kPickleEnd); });
    if (found == members.end()) fail("a ZIP archive without data.pkl, so it is no file of PyTorch");
    const std::string folder = found->name.substr(0, found->name.size() - kPickleEnd.size() + 1);
    if (std::ranges::any_of(members, [&](const ZipMember& one) { return one.name == folder + "constants.pkl"; }))
      fail("a TorchScript module, which contains code; save its state_dict(): torch.save(module.state_dict(), FILE)");
    check_byte_order(folder);
    if (found->size > kLargestPickle)
      zip->fail(*found, concat(found->size, " bytes, expected at most ", kLargestPickle));
    text.resize(static_cast<size_t>(found->size));
    ZipFile::Reader(*zip, *found).read(text.data(), text.size());
    source.emplace(text, file.path());
    parse();
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i].name.starts_with(folder + "data/"))
        storages[members[i].name.substr(folder.size() + 5)] = {
            .offset = members[i].offset, .member = i, .reads_by_parts = false};
    std::map<size_t, size_t> tensors_of_member;
    for (const StoredTensor& tensor : state.tensors) {
      check_member(tensor);
      if (!tensor.array && tensor.bytes_of_element > 0)
        check_inflations(++tensors_of_member[storages.at(tensor.storage).member], tensor);
    }
  }
  // Each tensor of a deflated storage inflates it again. PyTorch does not deflate.
  void check_inflations(size_t tensors, const StoredTensor& tensor) const {
    const ZipMember& member = zip->members()[storages.at(tensor.storage).member];
    if (member.deflated && tensors > kMostInflations)
      zip->fail(member, concat("a deflated storage of more than ", kMostInflations,
                               " tensors; store it without compression, as PyTorch does"));
  }
  void check_byte_order(const std::string& folder) const {
    for (const ZipMember& member : zip->members()) {
      if (member.name != folder + "byteorder" || member.size > 16) continue;
      std::string order(static_cast<size_t>(member.size), '\0');
      ZipFile::Reader(*zip, member).read(order.data(), order.size());
      if (order != "little") zip->fail(member, "expected little; big-endian files are not supported");
    }
  }
  void check_member(const StoredTensor& tensor) const {
    if (tensor.array || tensor.bytes_of_element == 0) return;
    const auto found = storages.find(tensor.storage);
    if (found == storages.end()) fail(tensor, concat("the archive has no data/", tensor.storage));
    const ZipMember& member = zip->members()[found->second.member];
    if (member.size / tensor.bytes_of_element < tensor.end)
      zip->fail(member, concat(member.size, " bytes, tensor ", tensor.name, " needs ", tensor.end, " elements of ",
                               tensor.dtype));
  }

  // --- Pickles of a magic number, a version, the system, the object and the storages' keys; then the storages ---
  void open_legacy(const std::string& begin) {
    if (begin.substr(kLegacyMagic.size()) != kLegacyVersion) fail("an unknown version of PyTorch's form before 1.6");
    source.emplace(file, begin.size());
    const pickle::Pickle system = pickle::read(*source, tensor_globals(), fault);
    const pickle::Value* const little = system.find(system[system.root], "little_endian");
    if (!little || little->integer == 0) fail("big-endian files are not supported");
    parse();
    const pickle::Pickle keys = pickle::read(*source, tensor_globals(), fault);
    const pickle::Value& list = keys[keys.root];
    if (list.kind != pickle::Kind::list || list.items.size() > kMostStorages)
      fail("no list of storages after the tensors");
    std::map<std::string, size_t> bytes_of_key;
    for (const StoredTensor& tensor : state.tensors) bytes_of_key[tensor.storage] = tensor.bytes_of_element;
    find_element_sizes(bytes_of_key);
    uint64_t at = source->at();
    for (const pickle::Id id : list.items) at = place_storage(keys[id], bytes_of_key, at);
    for (const StoredTensor& tensor : state.tensors) {
      if (tensor.array || tensor.bytes_of_element == 0) continue;
      const auto found = storages.find(tensor.storage);
      if (found == storages.end()) fail(tensor, concat("the file has no storage ", tensor.storage));
      if (found->second.elements < tensor.end)
        fail(tensor, concat("a storage of ", found->second.elements, " elements, ", tensor.end, " are needed"));
    }
  }
  // Storages of other tensors, such as an optimizer's, lie between those of the state_dict.
  void find_element_sizes(std::map<std::string, size_t>& bytes_of_key) const {
    for (const pickle::Value& value : content.values) {
      if (value.kind != pickle::Kind::persistent) continue;
      const pickle::Value& reference = content[value.items[0]];
      if (reference.kind != pickle::Kind::tuple || reference.items.size() < 3) continue;
      const pickle::Value &type = content[reference.items[1]], &key = content[reference.items[2]];
      if (const size_t bytes = storage_bytes(type.text)) bytes_of_key.emplace(key.text, bytes);
    }
  }
  uint64_t place_storage(const pickle::Value& key, const std::map<std::string, size_t>& bytes_of_key, uint64_t at) {
    const auto bytes = bytes_of_key.find(key.text);
    if (bytes == bytes_of_key.end() || bytes->second == 0) fail(concat("storage ", key.text, ": of an unknown type"));
    int64_t elements = 0;
    if (file.size() - at < sizeof elements) fail("truncated: storages are missing");
    file.read(at, &elements, sizeof elements);
    at += sizeof elements;
    if (elements < 0 || static_cast<uint64_t>(elements) > (file.size() - at) / bytes->second)
      fail(concat("truncated: storage ", key.text, " has ", elements, " elements, ", file.size() - at,
                  " bytes are left"));
    storages[key.text] = {.offset = at, .elements = static_cast<uint64_t>(elements)};
    return at + static_cast<uint64_t>(elements) * bytes->second;
  }

  // --- A pickle alone, with NumPy arrays ---
  void open_pickle() {
    source.emplace(file, 0);
    parse();
    for (const StoredTensor& tensor : state.tensors)
      if (!tensor.array) fail(tensor, "its data is outside the pickle, in a file that PyTorch would have written");
  }

  void parse() {
    content = pickle::read(*source, tensor_globals(), fault);
    state = state_dict_of(content, file.path(), fault);
  }

  // --- Data ---
  const StoredTensor& find(const std::string& name) const {
    const auto found = by_name.find(name);
    DT_CHECK(found != by_name.end(), file.path(), ": there is no tensor ", name);
    return *found->second;
  }
  std::string read(const StoredTensor& tensor) {
    if (tensor.shape.count() == 0) return {};
    const uint64_t begin = tensor.offset, end = tensor.end;
    std::string stored;
    const auto append = [&](const char* bytes, uint64_t elements) {
      stored.append(bytes, static_cast<size_t>(elements) * tensor.bytes_of_element);
    };
    if (tensor.array)
      read_array(tensor, append);
    else if (!storages.at(tensor.storage).reads_by_parts)
      read_member(tensor, end, [&](const char* bytes, uint64_t first, uint64_t elements) {
        const uint64_t skipped = std::min(elements, begin > first ? begin - first : 0);
        append(bytes + skipped * tensor.bytes_of_element, elements - skipped);
      });
    else
      read_range(storages.at(tensor.storage).offset + begin * tensor.bytes_of_element, end - begin,
                 tensor.bytes_of_element, append);
    return row_major(std::move(stored), tensor);
  }
  template <class Append>
  void read_range(uint64_t offset, uint64_t elements, size_t size, const Append& append) const {
    std::string bytes;
    for (uint64_t done = 0; done < elements;) {
      const uint64_t some = std::min<uint64_t>(kChunkElements, elements - done);
      bytes.resize(static_cast<size_t>(some * size));
      file.read(offset + done * size, bytes.data(), bytes.size());
      append(bytes.data(), some);
      done += some;
    }
  }
  // The whole member is read, so that its checksum is verified. Tensors that share a stored member read it whole once.
  template <class Append>
  void read_member(const StoredTensor& tensor, uint64_t end, const Append& append) {
    Storage& storage = storages.at(tensor.storage);
    const ZipMember& member = zip->members()[storage.member];
    ZipFile::Reader reader(*zip, member);
    std::string bytes;
    for (uint64_t first = 0; reader.left() > 0;) {
      bytes.resize(static_cast<size_t>(std::min<uint64_t>(kChunkElements * tensor.bytes_of_element, reader.left())));
      reader.read(bytes.data(), bytes.size());
      const uint64_t elements = bytes.size() / tensor.bytes_of_element;
      if (first < end) append(bytes.data(), first, std::min(elements, end - first));
      first += elements;
    }
    storage.reads_by_parts = !member.deflated;
  }
  template <class Append>
  void read_array(const StoredTensor& tensor, const Append& append) const {
    std::string bytes(static_cast<size_t>(tensor.array->size), '\0');
    if (tensor.array->text.size() == tensor.array->size)
      bytes = tensor.array->text;
    else
      source->read_at(tensor.array->begin, bytes.data(), bytes.size());
    if (tensor.utf8) bytes = latin1_of(bytes);
    const uint64_t expected = tensor.storage_elements * tensor.bytes_of_element;
    if (bytes.size() != expected) fail(tensor, concat("it has ", bytes.size(), " bytes, expected ", expected));
    append(bytes.data(), tensor.storage_elements);
  }
  static std::string latin1_of(const std::string& utf8) {
    std::string bytes;
    bytes.reserve(utf8.size());
    for (size_t i = 0; i < utf8.size(); ++i) {
      const auto lead = static_cast<unsigned char>(utf8[i]);
      if (lead < 0x80 || i + 1 == utf8.size())
        bytes += utf8[i];
      else
        bytes += static_cast<char>((lead & 3) << 6 | (static_cast<unsigned char>(utf8[++i]) & 0x3f));
    }
    return bytes;
  }

  InputFile file;
  Fault fault;
  std::optional<ZipFile> zip{};
  std::string text{};  // data.pkl of an archive
  std::optional<pickle::Source> source{};
  pickle::Pickle content{};
  StateDict state{};
  std::map<std::string, Storage> storages{};
  std::vector<TorchEntry> entries{};
  std::map<std::string_view, const StoredTensor*> by_name{};
};

TorchFile::TorchFile(const std::string& path, Fault fault) : content_(std::make_unique<Content>(path, fault)) {
  content_->open();
}
TorchFile::~TorchFile() = default;
TorchFile::TorchFile(TorchFile&&) noexcept = default;
TorchFile& TorchFile::operator=(TorchFile&&) noexcept = default;

const std::string& TorchFile::path() const { return content_->file.path(); }
const std::vector<TorchEntry>& TorchFile::entries() const { return content_->entries; }
const std::string& TorchFile::location() const { return content_->state.location; }
const std::vector<std::string>& TorchFile::others() const { return content_->state.others; }

std::vector<float> TorchFile::read_floats(const std::string& name) const {
  const StoredTensor& tensor = content_->find(name);
  if (!is_floating(tensor.dtype))
    content_->fail(tensor, concat("elements of ", tensor.dtype, ", expected floating-point numbers"));
  return floats_of(tensor.dtype, content_->read(tensor));
}

std::string TorchFile::read_bytes(const std::string& name) const {
  const StoredTensor& tensor = content_->find(name);
  if (tensor.bytes_of_element == 0) content_->fail(tensor, concat("elements of the type ", tensor.dtype));
  return content_->read(tensor);
}

bool begins_torch_file(std::string_view bytes) {
  return bytes.starts_with(kZipMember) || bytes.starts_with(kLegacyMagic) ||
         (bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 1 && bytes[1] <= 5);
}

}  // namespace dtrain
