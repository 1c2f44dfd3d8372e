#include "tests/testing.h"
