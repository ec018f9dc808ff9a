// SPDX-License-Identifier: BSD-2-Clause
// The digest for vectors of 256 bits; compiled with -mavx2.
#define ALB_DIGEST_KERNEL alb_digest_avx2
#include "base/digest_body.h"
