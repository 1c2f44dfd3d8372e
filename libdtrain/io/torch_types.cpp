#include "libdtrain/io/torch_types.h"

#include <algorithm>
#include <vector>

#include "libdtrain/io/element_types.h"

namespace dtrain {
namespace {

constexpr ElementType kElementTypes[] = {
    {"torch.float32", "torch.FloatStorage", "F32"},
    {"torch.float64", "torch.DoubleStorage", "F64"},
    {"torch.float16", "torch.HalfStorage", "F16"},
    {"torch.bfloat16", "torch.BFloat16Storage", "BF16"},
    {"torch.int64", "torch.LongStorage", "I64"},
    {"torch.int32", "torch.IntStorage", "I32"},
    {"torch.int16", "torch.ShortStorage", "I16"},
    {"torch.int8", "torch.CharStorage", "I8"},
    {"torch.uint8", "torch.ByteStorage", "U8"},
    {"torch.bool", "torch.BoolStorage", "BOOL"},
    {"torch.uint16", "", "U16"},
    {"torch.uint32", "", "U32"},
    {"torch.uint64", "", "U64"},
    {"torch.float8_e4m3fn", "", "F8_E4M3"},
    {"torch.float8_e5m2", "", "F8_E5M2"},
};

constexpr std::string_view kUntypedStorages[] = {"torch.storage.UntypedStorage", "torch.UntypedStorage",
                                                 "torch.storage._UntypedStorage"};

constexpr std::string_view kOfPython[] = {"collections.OrderedDict",
                                          "collections.defaultdict",
                                          "builtins.dict",
                                          "__builtin__.dict",
                                          "builtins.list",
                                          "__builtin__.list",
                                          "builtins.int",
                                          "__builtin__.int",
                                          "builtins.set",
                                          "__builtin__.set",
                                          "builtins.frozenset",
                                          "__builtin__.frozenset",
                                          "builtins.bytearray",
                                          "__builtin__.bytearray",
                                          "_codecs.encode",
                                          "argparse.Namespace",
                                          "pathlib.PosixPath",
                                          "pytorch_lightning.utilities.parsing.AttributeDict",
                                          "lightning.fabric.utilities.data.AttributeDict",
                                          "lightning_fabric.utilities.data.AttributeDict",
                                          "lightning.pytorch.utilities.parsing.AttributeDict",
                                          "numpy.core.multiarray._reconstruct",
                                          "numpy._core.multiarray._reconstruct",
                                          "numpy.core.multiarray.scalar",
                                          "numpy._core.multiarray.scalar",
                                          "numpy.core.numeric._frombuffer",
                                          "numpy._core.numeric._frombuffer",
                                          "numpy.ndarray",
                                          "numpy.dtype"};

constexpr std::string_view kOfTorch[] = {"torch._utils._rebuild_tensor",
                                         "torch._utils._rebuild_tensor_v2",
                                         "torch._utils._rebuild_tensor_v3",
                                         "torch._utils._rebuild_parameter",
                                         "torch._tensor._rebuild_from_type_v2",
                                         "torch._tensor._rebuild_from_type",
                                         "torch.nn.parameter.Parameter",
                                         "torch.Tensor",
                                         "torch.Size",
                                         "torch.device",
                                         "torch.serialization._get_layout",
                                         "torch.strided",
                                         "torch.complex64",
                                         "torch.complex128",
                                         "torch.ComplexFloatStorage",
                                         "torch.ComplexDoubleStorage"};

std::vector<std::string_view> all_globals() {
  std::vector<std::string_view> names(std::begin(kOfPython), std::end(kOfPython));
  names.insert(names.end(), std::begin(kOfTorch), std::end(kOfTorch));
  names.insert(names.end(), std::begin(kUntypedStorages), std::end(kUntypedStorages));
  for (const ElementType& type : kElementTypes) {
    names.push_back(type.name);
    if (!type.storage.empty()) names.push_back(type.storage);
  }
  return names;
}

}  // namespace

const ElementType* element_type(std::string_view name) {
  for (const ElementType& type : kElementTypes)
    if (!name.empty() && (type.name == name || type.storage == name)) return &type;
  return nullptr;
}

size_t storage_bytes(std::string_view storage) {
  if (storage == "torch.ComplexFloatStorage") return 8;
  if (storage == "torch.ComplexDoubleStorage") return 16;
  const ElementType* const type = element_type(storage);
  return type ? bytes_of_dtype(type->dtype) : 0;
}

bool is_untyped_storage(std::string_view name) {
  return std::ranges::find(kUntypedStorages, name) != std::end(kUntypedStorages);
}

std::span<const std::string_view> tensor_globals() {
  static const std::vector<std::string_view> names = all_globals();
  return names;
}

}  // namespace dtrain
