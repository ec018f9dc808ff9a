// SPDX-License-Identifier: BSD-2-Clause
// The key table. A key is 32 random bits, of which some say where in the table its region stands; so a stranger must
// guess all of them. The low byte of a key in the same place never repeats its predecessor's: a key that was freed does
// not open what came after it.
#pragma once

#include "engine/region.h"

// Gives the region a place and a key. ENOMEM at the configured limit.
int alb_region_table_add(struct alb_engine *engine, struct alb_region *region);
void alb_region_table_remove(struct alb_region *region);
// The region with exactly that key, or NULL.
struct alb_region *alb_region_table_find(const struct alb_engine *engine, uint32_t key);
// The region whose key is that but for the low byte, or NULL: a window keeps its place through all its binds.
struct alb_region *alb_region_table_find_place(const struct alb_engine *engine, uint32_t key);
