// SPDX-License-Identifier: BSD-2-Clause
#include "sim/control.h"

static void on_control(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    struct alb_sim_link *link = packet->on;
    enum alb_sim_control control = packet->path;
    uint64_t value = alb_sim_load(packet)->delay;
    bool is_lost = packet->from->is_dead || value != link->control_life;
    alb_sim_packet_put(link->pool, packet);
    if (control == ALB_SIM_CONTROL_CREDIT)
        alb_sim_link_add_credit(link, value, now);
    else if (!is_lost)
        alb_sim_link_set_paused(link, ALB_SIM_PAUSED_BY_PEER, control == ALB_SIM_CONTROL_PAUSE, now);
}

bool alb_sim_control_send(struct alb_sim_link *link, struct alb_sim_link *back, enum alb_sim_control control,
                          uint64_t bytes, alb_sim_time now)
{
    if (back->is_dead && control != ALB_SIM_CONTROL_CREDIT)
        return false;
    struct alb_sim_packet *packet = alb_sim_packet_get(link->pool, 0);
    bool is_credit = control == ALB_SIM_CONTROL_CREDIT;
    alb_sim_time at = ALB_MAX(now, back->busy_until) + alb_sim_link_time_of(back, ALB_SIM_CONTROL_WIRE_BYTES);
    at += back->delay;
    if (!is_credit) // also where the way back has become shorter or faster: the last word must be the newest
        at = link->control_at = ALB_MAX(at, link->control_at);
    packet->on = link;
    packet->from = back;
    packet->path = (uint8_t)control;
    alb_sim_load(packet)->delay = is_credit ? bytes : link->control_life;
    alb_sim_load(packet)->stored_bytes = alb_sim_load(packet)->length = 0;
    packet->event.fire = on_control;
    alb_sim_queue_schedule_for(link->queue, &packet->event, alb_sim_before_end(at), link->from_node);
    return true;
}
