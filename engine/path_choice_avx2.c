// SPDX-License-Identifier: BSD-2-Clause
// The choice among many paths for vectors of 256 bits; compiled with -mavx2.
#define LANES   4
#define CHOOSER alb_path_chooser_avx2
#include "engine/path_choice_body.h"
