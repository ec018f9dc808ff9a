// SPDX-License-Identifier: BSD-2-Clause
// The digest for vectors of 512 bits; compiled with -mavx512f.
#define ALB_DIGEST_KERNEL alb_digest_avx512
#include "base/digest_body.h"
