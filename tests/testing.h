// Shared by the tests.
#pragma once
#include <gtest/gtest.h>
