// The order of all writes (include/varve/types.h), for code below the public interface.
#pragma once

#include "varve/types.h"
