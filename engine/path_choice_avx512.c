// SPDX-License-Identifier: BSD-2-Clause
// The choice among many paths for vectors of 512 bits; compiled with -mavx512f -mavx512dq.
#define LANES   8
#define CHOOSER alb_path_chooser_avx512
#include "engine/path_choice_body.h"
