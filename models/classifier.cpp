#include "models/classifier.h"
