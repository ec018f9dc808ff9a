// SPDX-License-Identifier: BSD-2-Clause
// Paths of policy "adaptive" by themselves, of which a test tells what it likes.
#pragma once

#include "base/tests/test.h"
#include "engine/csa_path.h"

// The caller frees them.
struct alb_paths_out *path_reported_new(uint32_t count);
// So many packets leave by the path, and some of them are lost; without a round-trip time.
void path_reported(struct alb_paths_out *paths, uint8_t path, uint32_t sent, uint32_t lost, alb_time now);
// The last round trip of those from first up to past.
void path_reported_rtt(struct alb_paths_out *paths, uint32_t first, uint32_t past, uint32_t rtt_ns);
// So many bytes are in flight on the path, whatever was before.
void path_reported_inflight(struct alb_paths_out *paths, uint8_t path, uint32_t bytes);
// What is counted as paths change is what counting all of them gives.
void path_reported_recount(const struct alb_paths_out *paths);
