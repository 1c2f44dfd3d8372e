#include "libdtrain/io/torch_tensors.h"

#include <algorithm>
#include <set>

#include "libdtrain/io/element_types.h"
#include "libdtrain/io/torch_types.h"

namespace dtrain {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr int kDeepest = 16;                // nesting of dictionaries and of calls
constexpr size_t kMostVisits = 4'000'000;   // dictionary items: shared dictionaries multiply
constexpr int64_t kMostExpanded = 1 << 24;  // elements beyond those stored, of tensors with stride 0

// Keys under which programs keep the weights, in the order of preference.
constexpr std::string_view kStateKeys[] = {
    "state_dict", "model_state_dict", "model_state", "model",          "module", "net",  "network",
    "weights",    "state_dict_ema",   "model_ema",   "ema_state_dict", "ema",    "blobs"};
// Keys of tensors that are no weights.
constexpr std::string_view kNoWeights[] = {"optimizer",        "optimizer_state", "optimizer_state_dict",
                                           "optimizer_states", "optim",           "scheduler",
                                           "lr_scheduler",     "lr_schedulers",   "scaler",
                                           "amp_scaler",       "callbacks",       "loops",
                                           "rng_state",        "cuda_rng_state"};

template <class Names>
bool one_of(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

class Reader {
 public:
  Reader(const pickle::Pickle& pickle, const std::string& where, Fault fault)
      : pickle_(pickle), where_(where), fault_(fault) {}

  StateDict state_dict() {
    StateDict state;
    const Value* dict = &pickle_[pickle_.root];
    if (dict->kind != Kind::dict) fail(concat("it holds ", description(*dict), "; expected a state_dict"));
    // Tensors beside such a key, such as best_acc1 or rng_state, are no weights.
    for (int depth = 0; depth < kDeepest; ++depth) {
      const Value* inner = nullptr;
      std::string_view key;
      for (const std::string_view known : kStateKeys)
        if (const Value* found = inner ? nullptr : pickle_.find(*dict, known); found && reaches_tensors(*found, 0))
          inner = found, key = known;
      if (!inner) break;
      for (size_t i = 0; i < dict->items.size(); i += 2)
        if (const Value& one = pickle_[dict->items[i]];
            one.kind == Kind::text && one.text != key && state.others.size() < 64)
          state.others.push_back(one.text);
      state.location += (state.location.empty() ? "" : ".") + std::string(key);
      dict = inner;
    }
    add_tensors(*dict, "", 0, state);
    require_different_names(state.tensors);
    if (state.tensors.empty()) fail(concat("it holds no tensors; its keys are ", keys_of(*dict)));
    return state;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fault_, concat(where_, ": ", what)); }
  [[noreturn]] void fail(const std::string& tensor, const std::string& what) const {
    fail(concat("tensor ", printable(tensor), ": ", what));
  }
  static std::string printable(const std::string& name) {
    const bool odd =
        name.size() > 200 || std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f; });
    return odd ? "with an odd name" : name;
  }

  std::string description(const Value& value) const {
    if (value.kind == Kind::list) return "a list";
    if (is_tensor(value)) return "a single tensor";
    if (value.kind == Kind::call) return "an object of " + pickle_[value.items[0]].text;
    return "no dictionary";
  }
  std::string keys_of(const Value& dict) const {
    std::string keys;
    for (size_t i = 0; i < dict.items.size() && i < 16; i += 2)
      if (const Value& key = pickle_[dict.items[i]]; key.kind == Kind::text)
        keys += (keys.empty() ? "" : ", ") + printable(key.text);
    return keys.empty() ? "none" : keys;
  }

  // --- Search ---
  const std::string* callee(const Value& value) const {
    return value.kind == Kind::call ? &pickle_[value.items[0]].text : nullptr;
  }
  bool is_tensor(const Value& value) const {
    const std::string* const name = callee(value);
    return name && (name->starts_with("torch._utils._rebuild") || name->starts_with("torch._tensor._rebuild") ||
                    name->ends_with("multiarray._reconstruct") || name->ends_with("numeric._frombuffer"));
  }
  void visit(const Value& dict) const {
    if ((visits_ += dict.items.size() + 1) > kMostVisits) fail("its dictionaries share too many items");
  }
  bool holds_tensors(const Value& dict) const {
    visit(dict);
    for (size_t i = 1; i < dict.items.size(); i += 2)
      if (is_tensor(pickle_[dict.items[i]])) return true;
    return false;
  }
  bool reaches_tensors(const Value& value, int depth) const {
    if (value.kind != Kind::dict || depth > 3) return false;
    if (holds_tensors(value)) return true;
    for (size_t i = 1; i < value.items.size(); i += 2)
      if (reaches_tensors(pickle_[value.items[i]], depth + 1)) return true;
    return false;
  }
  void add_tensors(const Value& dict, const std::string& prefix, int depth, StateDict& state) const {
    if (depth > kDeepest) fail("dictionaries are nested too deeply");
    visit(dict);
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const Value &key = pickle_[dict.items[i]], &value = pickle_[dict.items[i + 1]];
      if (key.kind != Kind::text || key.size != key.text.size()) continue;
      const std::string name = prefix + key.text;
      if (is_tensor(value)) {
        StoredTensor tensor = tensor_of(name, value, 0);
        tensor.name = name;
        state.tensors.push_back(std::move(tensor));
      } else if (value.kind == Kind::dict && !one_of(kNoWeights, key.text)) {
        if (name.size() > 4096) fail("names of nested dictionaries are too long");
        add_tensors(value, name + ".", depth + 1, state);
      }
    }
  }

  // Tensors are found by name: the data of one would be read with the shape of another.
  void require_different_names(const std::vector<StoredTensor>& tensors) const {
    std::set<std::string_view> names;
    for (const StoredTensor& tensor : tensors)
      if (!names.insert(tensor.name).second) fail(tensor.name, "there is another one of this name");
  }

  // --- Arguments ---
  const Value& argument(const std::string& tensor, const Value& tuple, size_t i) const {
    if (tuple.kind != Kind::tuple || i >= tuple.items.size()) fail(tensor, "arguments are missing");
    return pickle_[tuple.items[i]];
  }
  int64_t integer(const std::string& tensor, const Value& value) const {
    if (value.kind != Kind::integer || value.integer < 0) fail(tensor, "expected an integer, not negative");
    return value.integer;
  }
  std::vector<int64_t> integers(const std::string& tensor, const Value& value) const {
    // torch.Size is a call with a tuple. Calls within calls are refused: recursion would exhaust the stack.
    const std::string* const name = callee(value);
    const bool is_size = name && *name == "torch.Size";
    const Value& tuple = is_size ? argument(tensor, pickle_[value.items[1]], 0) : value;
    if (tuple.kind != Kind::tuple && tuple.kind != Kind::list) fail(tensor, "expected a tuple of integers");
    if (tuple.items.size() > Shape::kMaxRank)
      fail(tensor, concat(tuple.items.size(), " dimensions, expected at most 6"));
    std::vector<int64_t> numbers;
    for (const pickle::Id one : tuple.items) numbers.push_back(integer(tensor, pickle_[one]));
    return numbers;
  }
  Shape shape(const std::string& tensor, const Value& value) const {
    const std::vector<int64_t> dims = integers(tensor, value);
    Shape result;
    try {
      for (const int64_t dim : dims) result.append(dim);
    } catch (const Error&) {
      fail(tensor, "a shape whose elements cannot be counted");
    }
    return result;
  }

  // --- Tensors ---
  StoredTensor tensor_of(const std::string& name, const Value& call, int depth) const {
    if (depth > kDeepest || !is_tensor(call)) fail(name, "no tensor");
    const std::string& function = *callee(call);
    const Value& given = pickle_[call.items[1]];
    if (function.ends_with("_rebuild_parameter")) return tensor_of(name, argument(name, given, 0), depth + 1);
    if (function.starts_with("torch._tensor.")) return typed_tensor(name, given, depth);
    if (function.ends_with("_reconstruct")) return numpy_array(name, call);
    if (function.ends_with("_frombuffer")) return numpy_buffer(name, given);
    return torch_tensor(name, given, function.ends_with("_v3"));
  }
  // (function, type, arguments, state) of a tensor with attributes.
  StoredTensor typed_tensor(const std::string& name, const Value& given, int depth) const {
    const Value& function = argument(name, given, 0);
    if (function.kind != Kind::global) fail(name, "a call of an object that is no global");
    const Value& inner = argument(name, given, 2);
    if (function.text.ends_with("_rebuild_parameter")) return tensor_of(name, argument(name, inner, 0), depth + 1);
    if (!function.text.starts_with("torch._utils._rebuild_tensor"))
      fail(name, concat(function.text, " is not supported"));
    return torch_tensor(name, inner, function.text.ends_with("_v3"));
  }
  // (storage, offset, size, stride, requires_grad, backward_hooks [, dtype in version 3])
  StoredTensor torch_tensor(const std::string& name, const Value& given, bool untyped) const {
    const Value& storage = argument(name, given, 0);
    if (storage.kind != Kind::persistent) fail(name, "its storage is no reference to data of the file");
    // ("storage", type, key, location, elements [, view])
    const Value& reference = pickle_[storage.items[0]];
    const Value &type = argument(name, reference, 1), &key = argument(name, reference, 2);
    if (type.kind != Kind::global || key.kind != Kind::text || key.text.empty() || key.text.size() > 256)
      fail(name, "the reference to its storage is malformed");
    StoredTensor tensor;
    tensor.storage = key.text;
    auto elements = static_cast<uint64_t>(integer(name, argument(name, reference, 4)));
    std::string_view wanted = type.text;
    if (is_untyped_storage(type.text)) {
      const Value& dtype = argument(name, given, 6);
      if (!untyped || dtype.kind != Kind::global) fail(name, "an untyped storage without an element type");
      wanted = dtype.text;
    }
    set_type(tensor, wanted);
    if (is_untyped_storage(type.text) && tensor.bytes_of_element) elements /= tensor.bytes_of_element;
    if (reference.items.size() > 5 && pickle_[reference.items[5]].kind == Kind::tuple) {  // (key, offset, elements)
      const Value& view = pickle_[reference.items[5]];
      tensor.offset = static_cast<uint64_t>(integer(name, argument(name, view, 1)));
      elements = UINT64_MAX;  // of the whole storage: the file states them
    }
    tensor.storage_elements = elements;
    tensor.offset += static_cast<uint64_t>(integer(name, argument(name, given, 1)));
    tensor.shape = shape(name, argument(name, given, 2));
    tensor.strides = integers(name, argument(name, given, 3));
    set_extent(name, tensor);
    return tensor;
  }
  static void set_type(StoredTensor& tensor, std::string_view name) {
    const ElementType* const type = element_type(name);
    tensor.dtype = type ? type->dtype : name;
    tensor.bytes_of_element = type ? bytes_of_dtype(type->dtype) : 0;
  }
  void set_extent(const std::string& name, StoredTensor& tensor) const {
    if (tensor.strides.size() != static_cast<size_t>(tensor.shape.rank()))
      fail(name, concat(tensor.strides.size(), " strides for the shape ", tensor.shape));
    uint64_t last = tensor.offset;
    constexpr uint64_t kMost = uint64_t{1} << 48;
    for (int i = 0; i < tensor.shape.rank(); ++i) {
      const auto dim = static_cast<uint64_t>(tensor.shape[i]),
                 stride = static_cast<uint64_t>(tensor.strides[static_cast<size_t>(i)]);
      if (dim == 0) return;
      if (stride > kMost || dim > kMost || (dim > 1 && stride > kMost / dim) || last > kMost)
        fail(name, "its extent is beyond any storage");
      last += (dim - 1) * stride;
    }
    if (last >= tensor.storage_elements)
      fail(name, concat("it ends at element ", last, " of a storage of ", tensor.storage_elements));
    if (static_cast<uint64_t>(std::max<int64_t>(0, tensor.shape.count() - kMostExpanded)) > last - tensor.offset + 1)
      fail(name, concat("a shape of ", tensor.shape, " over ", last - tensor.offset + 1, " stored elements"));
    tensor.end = last + 1;
  }

  // --- NumPy ---
  // State of an array: (version, shape, dtype, column-major, bytes)
  StoredTensor numpy_array(const std::string& name, const Value& call) const {
    if (call.items.size() != 3) fail(name, "a NumPy array without its state");
    const Value& state = pickle_[call.items[2]];
    StoredTensor tensor;
    tensor.shape = shape(name, argument(name, state, 1));
    set_numpy_type(name, tensor, argument(name, state, 2));
    const Value& order = argument(name, state, 3);
    set_dense_strides(tensor, order.kind == Kind::boolean && order.integer != 0);
    set_bytes(name, tensor, argument(name, state, 4));
    return tensor;
  }
  // (bytes, dtype, shape, order) of protocol 5
  StoredTensor numpy_buffer(const std::string& name, const Value& given) const {
    StoredTensor tensor;
    tensor.shape = shape(name, argument(name, given, 2));
    set_numpy_type(name, tensor, argument(name, given, 1));
    const Value& order = argument(name, given, 3);
    set_dense_strides(tensor, order.kind == Kind::text && order.text == "F");
    set_bytes(name, tensor, argument(name, given, 0));
    return tensor;
  }
  // numpy.dtype("f4", ...) with the state (version, byte order, ...)
  void set_numpy_type(const std::string& name, StoredTensor& tensor, const Value& dtype) const {
    const std::string* const function = callee(dtype);
    if (!function || *function != "numpy.dtype") fail(name, "an array without an element type");
    const Value& code = argument(name, pickle_[dtype.items[1]], 0);
    if (dtype.items.size() == 3) {
      const Value& state = pickle_[dtype.items[2]];
      if (const Value& order = argument(name, state, 1); order.kind == Kind::text && order.text == ">")
        fail(name, "big-endian elements are not supported");
    }
    tensor.dtype = dtype_of_numpy(code.text);
    if (tensor.dtype.empty())
      fail(name, concat("elements of NumPy's type ", printable(code.text), " are not supported"));
    tensor.bytes_of_element = bytes_of_dtype(tensor.dtype);
  }
  static void set_dense_strides(StoredTensor& tensor, bool column_major) {
    tensor.strides.assign(static_cast<size_t>(tensor.shape.rank()), 1);
    int64_t stride = 1;
    for (int i = 0; i < tensor.shape.rank(); ++i) {
      const int dim = column_major ? i : tensor.shape.rank() - 1 - i;
      tensor.strides[static_cast<size_t>(dim)] = stride;
      stride *= std::max<int64_t>(1, tensor.shape[dim]);
    }
    tensor.storage_elements = tensor.end = static_cast<uint64_t>(tensor.shape.count());
  }
  // Python 3 writes bytes in protocol 2 as _codecs.encode(text, "latin1").
  void set_bytes(const std::string& name, StoredTensor& tensor, const Value& bytes) const {
    tensor.array = &bytes;
    if (const std::string* const function = callee(bytes); function && *function == "_codecs.encode") {
      tensor.array = &argument(name, pickle_[bytes.items[1]], 0);
      tensor.utf8 = true;
    } else if (function && function->ends_with(".bytearray")) {
      tensor.array = &argument(name, pickle_[bytes.items[1]], 0);
    }
    if (tensor.array->kind != Kind::bytes && tensor.array->kind != Kind::text) fail(name, "an array without its bytes");
    const uint64_t expected = tensor.storage_elements * tensor.bytes_of_element, found = tensor.array->size;
    // Latin-1 takes one or two bytes in UTF-8.
    if (tensor.utf8 ? found < expected || found > 2 * expected : found != expected)
      fail(name, concat(tensor.dtype, " ", tensor.shape, " takes ", expected, " bytes, found ", found));
  }

  const pickle::Pickle& pickle_;
  const std::string& where_;
  Fault fault_;
  mutable size_t visits_ = 0;
};

}  // namespace

StateDict state_dict_of(const pickle::Pickle& pickle, const std::string& where, Fault fault) {
  return Reader(pickle, where, fault).state_dict();
}

}  // namespace dtrain
