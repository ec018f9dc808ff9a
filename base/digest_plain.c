// SPDX-License-Identifier: BSD-2-Clause
// The digest for every processor of the architecture.
#define ALB_DIGEST_KERNEL alb_digest_plain
#include "base/digest_body.h"
