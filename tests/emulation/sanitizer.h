// EMULATION_ASAN is defined where AddressSanitizer instruments the including file. GCC and Clang say so differently.
#pragma once

#ifdef __SANITIZE_ADDRESS__
#define EMULATION_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_ASAN
#endif
#endif
