// SPDX-License-Identifier: BSD-2-Clause
// Between the halves of a link: making it, and using it.
#pragma once

#include "tools/files_link.h"

bool files_link_post_receive(struct files_link *link, uint32_t index);
