// SPDX-License-Identifier: BSD-2-Clause
// What befalls a packet before it comes to a link's queue, on the wire and on the way: script, faults, death. Only for
// sim/link.c.
#pragma once

#include "sim/link.h"

// Whether its packets meet anything at all may have changed.
void alb_sim_link_note_faults(struct alb_sim_link *link);
void alb_sim_link_meet_faults(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now);
// It leaves by a link that does not go ahead.
void alb_sim_link_meet_wire(struct alb_sim_link *link, struct alb_sim_packet *packet);
// Whether it is lost now that it would arrive.
bool alb_sim_link_has_lost(const struct alb_sim_link *link, const struct alb_sim_packet *packet);
void alb_sim_link_forget_held(struct alb_sim_link *link);
// The packet is lost; the credit that it took comes back, as the credit counters of both ends show what is missing.
void alb_sim_link_lose(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now);
void alb_sim_link_mark(struct alb_sim_link *link, struct alb_sim_packet *packet);
