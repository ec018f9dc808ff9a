// SPDX-License-Identifier: BSD-2-Clause
// A switch's buffer: what is still admitted, and what is signalled about it to what sends to a port.
//
// Without flow control a port's queue may be as long as alpha times what is free, so that a few busy ports may have
// much of the buffer and many share it. With PFC the same bounds what an ingress port may fill; beyond that its link is
// paused, and what comes until then goes into the port's headroom. With credits the buffer is divided among the ingress
// ports, and their links' credits say what is free of it.
#include "sim/control.h"
#include "sim/switch.h"

enum {
    PORTS_AHEAD_MAX = 64, // whose queues are counted now and then
};

// ---- sizes ----------------------------------------------------------------------------------------------------------

// What a link carries in that time.
static uint64_t bytes_in(const struct alb_sim_link *link, alb_sim_time span)
{
    return (uint64_t)((unsigned __int128)span * link->config.bits_per_s / 8 / ALB_SIM_S(1));
}

// Until the pause takes effect: the packet that the frame waits for, the frame, its way and back, the packet that the
// other side has begun.
static uint64_t headroom_of(const struct alb_switch_config *config, const struct alb_sim_port *port)
{
    if (config->flow_control != ALB_FLOW_CONTROL_PFC)
        return 0;
    if (config->pfc_headroom_bytes)
        return config->pfc_headroom_bytes;
    alb_sim_time wait = alb_sim_link_time_of(port->out, config->packet_wire_bytes + ALB_SIM_CONTROL_WIRE_BYTES);
    return bytes_in(port->in, port->in->delay + port->out->delay + wait) + 2ull * config->packet_wire_bytes;
}

// A link that always has credit while the far end forwards: twice what is on its way, there and back.
static uint64_t credit_of(const struct alb_switch_config *config, const struct alb_sim_port *port)
{
    if (config->credit_bytes)
        return config->credit_bytes;
    return 2 * bytes_in(port->in, port->in->delay + port->out->delay) + 4ull * config->packet_wire_bytes;
}

// True if nothing that leaves has to be looked at before: no room to be given back, no feeder to be signalled, no
// packet that goes before others; and few ports, since the buffer is not counted then.
static bool may_go_ahead(const struct alb_sim_switch *sw)
{
    const struct alb_switch_config *config = sw->shared->config;
    bool has_rates = true;
    for (uint32_t i = 0; i < sw->port_count; i++)
        has_rates &= sw->outs[i]->config.bits_per_s > 0;
    return config->flow_control == ALB_FLOW_CONTROL_NONE && !config->trims && config->buffer_bytes == 0 && has_rates &&
           sw->port_count <= PORTS_AHEAD_MAX;
}

uint64_t alb_sim_switch_headroom(const struct alb_sim_switch *sw)
{
    uint64_t headroom_bytes = 0;
    for (uint32_t i = 0; i < sw->port_count; i++)
        headroom_bytes += sw->ports[i].headroom_bytes_max;
    return headroom_bytes;
}

bool alb_sim_switch_begin(struct alb_sim_switch *sw)
{
    const struct alb_switch_config *config = sw->shared->config;
    for (uint32_t i = 0; i < sw->port_count; i++) {
        struct alb_sim_port *port = &sw->ports[i];
        port->headroom_bytes_max = headroom_of(config, port);
        if (config->flow_control == ALB_FLOW_CONTROL_CREDITS)
            alb_sim_link_limit_credit(port->in, credit_of(config, port));
    }
    uint64_t headroom_bytes = alb_sim_switch_headroom(sw);
    sw->goes_ahead = may_go_ahead(sw);
    for (uint32_t i = 0; sw->goes_ahead && i < sw->port_count; i++)
        alb_sim_link_go_ahead(sw->outs[i], config->port_bytes_max);
    sw->buffer_bytes_max = config->buffer_bytes ? config->buffer_bytes - headroom_bytes : UINT64_MAX;
    return config->buffer_bytes == 0 || config->buffer_bytes > headroom_bytes;
}

// ---- room -----------------------------------------------------------------------------------------------------------

static uint64_t free_bytes(const struct alb_sim_switch *sw)
{
    return sw->buffer_bytes_max - ALB_MIN(sw->buffered_bytes, sw->buffer_bytes_max);
}

// The dynamic threshold: what one port may have of the shared buffer.
static uint64_t share(const struct alb_sim_switch *sw)
{
    uint64_t left = free_bytes(sw);
    uint32_t alpha = sw->shared->config->alpha_16ths;
    return alpha && sw->buffer_bytes_max != UINT64_MAX ? left / 16 * alpha : UINT64_MAX;
}

static uint64_t xoff_bytes(const struct alb_sim_switch *sw)
{
    uint64_t fixed = sw->shared->config->pfc_xoff_bytes;
    return fixed ? fixed : share(sw);
}

// Which port filled it is kept only where its feeder is signalled.
static bool keeps_ports(const struct alb_sim_switch *sw)
{
    return sw->shared->config->flow_control != ALB_FLOW_CONTROL_NONE;
}

uint64_t alb_sim_switch_buffered(const struct alb_sim_switch *sw, alb_sim_time now)
{
    uint64_t bytes = 0;
    if (!sw->goes_ahead)
        return sw->buffered_bytes;
    for (uint32_t i = 0; i < sw->port_count; i++)
        bytes += alb_sim_link_queued_bytes(sw->outs[i], now);
    return bytes;
}

// All ports are counted only when the most ever may have been passed, if nothing had left since they were last.
void alb_sim_switch_count(struct alb_sim_switch *sw, alb_sim_time now)
{
    uint64_t bytes = alb_sim_switch_buffered(sw, now);
    sw->stats.buffered_bytes_peak = ALB_MAX(sw->stats.buffered_bytes_peak, bytes);
    sw->uncounted_bytes = (int64_t)(sw->stats.buffered_bytes_peak - bytes);
}

static void take(struct alb_sim_switch *sw, uint32_t bytes)
{
    sw->buffered_bytes += bytes;
    sw->stats.buffered_bytes_peak = ALB_MAX(sw->stats.buffered_bytes_peak, sw->buffered_bytes);
}

static void pause_feeder(struct alb_sim_switch *sw, struct alb_sim_port *port, alb_sim_time now)
{
    if (!port->has_paused && alb_sim_control_send(port->in, port->out, ALB_SIM_CONTROL_PAUSE, 0, now)) {
        port->has_paused = true;
        sw->stats.pauses_sent++;
    }
}

static bool admit_pfc(struct alb_sim_switch *sw, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_port *port = &sw->ports[packet->from->to_port];
    uint32_t bytes = packet->wire_bytes;
    if (port->headroom_bytes == 0 && bytes <= free_bytes(sw) && port->ingress_bytes + bytes <= xoff_bytes(sw)) {
        port->ingress_bytes += bytes;
        take(sw, bytes);
        return true;
    }
    pause_feeder(sw, port, now);
    if (port->headroom_bytes + bytes > port->headroom_bytes_max)
        return false;
    port->headroom_bytes += bytes;
    sw->stats.headroom_bytes += bytes;
    sw->stats.headroom_bytes_peak = ALB_MAX(sw->stats.headroom_bytes_peak, sw->stats.headroom_bytes);
    return true;
}

bool alb_sim_switch_admit(struct alb_sim_switch *sw, const struct alb_sim_link *out, struct alb_sim_packet *packet,
                          alb_sim_time now)
{
    const struct alb_switch_config *config = sw->shared->config;
    uint32_t bytes = packet->wire_bytes;
    if (config->flow_control == ALB_FLOW_CONTROL_PFC)
        return admit_pfc(sw, packet, now);
    if (config->flow_control == ALB_FLOW_CONTROL_NONE) {
        uint64_t queued = out->waiting_bytes + bytes;
        if ((config->port_bytes_max && queued > config->port_bytes_max) || bytes > free_bytes(sw) || queued > share(sw))
            return false;
    }
    if (keeps_ports(sw))
        sw->ports[packet->from->to_port].ingress_bytes += bytes;
    take(sw, bytes);
    return true;
}

// ---- room again -----------------------------------------------------------------------------------------------------

static void resume_feeder(struct alb_sim_switch *sw, struct alb_sim_port *port, alb_sim_time now)
{
    uint64_t xoff = xoff_bytes(sw), gap = sw->shared->config->pfc_xon_gap_bytes;
    uint64_t xon = xoff > gap ? xoff - gap : 0;
    bool is_low = port->headroom_bytes == 0 && (port->ingress_bytes == 0 || port->ingress_bytes <= xon);
    if (port->has_paused && is_low && alb_sim_control_send(port->in, port->out, ALB_SIM_CONTROL_RESUME, 0, now))
        port->has_paused = false;
}

void alb_sim_switch_release(struct alb_sim_switch *sw, const struct alb_sim_packet *packet, alb_sim_time now)
{
    uint32_t bytes = packet->wire_bytes;
    if (!keeps_ports(sw)) {
        sw->buffered_bytes -= sw->goes_ahead ? 0 : bytes;
        return;
    }
    struct alb_sim_port *port = &sw->ports[packet->from->to_port];
    // Counters know no packets: what leaves makes room in the headroom first, so that a port whose queue has become
    // short enough may be told to go on though what came last is still in it.
    uint32_t headroom_bytes = (uint32_t)ALB_MIN((uint64_t)bytes, port->headroom_bytes);
    port->headroom_bytes -= headroom_bytes;
    sw->stats.headroom_bytes -= headroom_bytes;
    port->ingress_bytes -= bytes - headroom_bytes;
    sw->buffered_bytes -= bytes - headroom_bytes;
    if (port->has_paused)
        resume_feeder(sw, port, now);
    if (port->in->has_credit_limit)
        alb_sim_control_send(port->in, port->out, ALB_SIM_CONTROL_CREDIT, bytes, now);
}

void alb_sim_switch_rejoin(struct alb_sim_switch *sw, uint32_t number, alb_sim_time now)
{
    struct alb_sim_port *port = &sw->ports[number];
    port->has_paused = port->headroom_bytes > 0 && !port->out->is_dead; // else it could not be told to go on
    port->in->control_life++; // a pause that is under way would never be taken back
    alb_sim_link_set_paused(port->in, ALB_SIM_PAUSED_BY_PEER, port->has_paused, now);
}
