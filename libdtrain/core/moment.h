// Deprecated header, removed with the next minor version: include libdtrain/core/event.h.
#pragma once

#include "libdtrain/core/event.h"

namespace dtrain {

using Moment [[deprecated("renamed: Event")]] = Event;
using Queue [[deprecated("renamed: Stream")]] = Stream;

}  // namespace dtrain
