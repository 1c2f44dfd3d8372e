// Opcodes of pickles, by their names in CPython's Lib/pickle.py.
#pragma once

namespace dtrain::pickle {

enum Op : unsigned char {
  MARK = '(',
  STOP = '.',
  POP = '0',
  POP_MARK = '1',
  DUP = '2',
  FLOAT = 'F',
  INT = 'I',
  BININT = 'J',
  BININT1 = 'K',
  LONG = 'L',
  BININT2 = 'M',
  NONE = 'N',
  PERSID = 'P',
  BINPERSID = 'Q',
  REDUCE = 'R',
  STRING = 'S',
  BINSTRING = 'T',
  SHORT_BINSTRING = 'U',
  UNICODE = 'V',
  BINUNICODE = 'X',
  APPEND = 'a',
  BUILD = 'b',
  GLOBAL = 'c',
  DICT = 'd',
  EMPTY_DICT = '}',
  APPENDS = 'e',
  GET = 'g',
  BINGET = 'h',
  INST = 'i',
  LONG_BINGET = 'j',
  LIST = 'l',
  EMPTY_LIST = ']',
  OBJ = 'o',
  PUT = 'p',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  SETITEM = 's',
  TUPLE = 't',
  EMPTY_TUPLE = ')',
  SETITEMS = 'u',
  BINFLOAT = 'G',
  BINBYTES = 'B',
  SHORT_BINBYTES = 'C',
  PROTO = 0x80,
  NEWOBJ,
  EXT1,
  EXT2,
  EXT4,
  TUPLE1,
  TUPLE2,
  TUPLE3,
  NEWTRUE,
  NEWFALSE,
  LONG1,
  LONG4,
  SHORT_BINUNICODE,
  BINUNICODE8,
  BINBYTES8,
  EMPTY_SET,
  ADDITEMS,
  FROZENSET,
  NEWOBJ_EX,
  STACK_GLOBAL,
  MEMOIZE,
  FRAME,
  BYTEARRAY8,
  NEXT_BUFFER,
  READONLY_BUFFER,
};

// Name of an opcode that read() refuses; null for others.
inline const char* unsupported(unsigned char op) {
  switch (op) {
    case INST:
      return "INST";
    case OBJ:
      return "OBJ";
    case EXT1:
    case EXT2:
    case EXT4:
      return "EXT, an entry of a registry";
    case NEWOBJ_EX:
      return "NEWOBJ_EX";
    case NEXT_BUFFER:
    case READONLY_BUFFER:
      return "NEXT_BUFFER, bytes outside the pickle";
    default:
      return nullptr;
  }
}

}  // namespace dtrain::pickle
