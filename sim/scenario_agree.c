// SPDX-License-Identifier: BSD-2-Clause
// What values of [host] and [switch] must have to do with each other, said with the line of the key that is wrong: the
// engine and the switches only say EINVAL.
#include "engine/credit.h"
#include "engine/policy.h"
#include "sim/packet.h"
#include "sim/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_power_of_two(uint32_t value)
{
    return value && (value & (value - 1)) == 0;
}

static bool complain(const struct alb_scenario *scenario, const char *section, const char *name, const char *key,
                     const char *expected, struct alb_complaint *complaint)
{
    const struct alb_document_entry *entry = alb_document_find(&scenario->document, section, name, key);
    if (!entry) // another one's fault, or that of a section without a name
        entry = alb_document_find(&scenario->document, section, "", key);
    if (!entry)
        entry = alb_document_find(&scenario->document, section, name, "");
    return alb_complain(complaint, entry ? entry->file : scenario->document.file, entry ? entry->line : 0,
                        "%s: expected %s", key, expected);
}

// What one peer needs at a time: with less nothing would ever leave, nor fail.
static uint32_t pool_needed_bytes(const struct alb_engine_config *engine)
{
    struct alb_engine_state_sizes sizes;
    if (strcmp(engine->transport, "csa") != 0 || alb_engine_state_sizes(engine, &sizes) != 0)
        return 0;
    return sizes.association_active_bytes - sizes.association_idle_bytes;
}

static bool pool_agrees(const struct alb_scenario *scenario, const char *name, const struct alb_engine_config *engine,
                        struct alb_complaint *complaint)
{
    char expected[96];
    uint32_t needed_bytes = pool_needed_bytes(engine);
    if (!is_power_of_two(engine->csa_pool_bytes) || engine->csa_pool_bytes < ALB_SCENARIO_POOL_MIN)
        return complain(scenario, "host", name, "pool", "a power of two from 4K", complaint);
    snprintf(expected, sizeof(expected), "%" PRIu32 " bytes or more: what one peer takes over %" PRIu32 " paths",
             needed_bytes, engine->path_max);
    return engine->csa_pool_bytes >= needed_bytes || complain(scenario, "host", name, "pool", expected, complaint);
}

// Between its least and its greatest rate, if the latter is given: else it is the link's.
static bool dcqcn_agrees(const struct alb_scenario *scenario, const char *name, const struct alb_dcqcn_config *dcqcn,
                         struct alb_complaint *complaint)
{
    const struct {
        const char *key;
        uint64_t rate;
    } rates[] = {{"dcqcn_rate_min", dcqcn->rate_min_bytes_per_s},
                 {"dcqcn_additive", dcqcn->additive_bytes_per_s},
                 {"dcqcn_hyper", dcqcn->hyper_bytes_per_s}};
    char expected[96];
    for (size_t i = 0; i < ALB_COUNT(rates) && dcqcn->rate_max_bytes_per_s; i++) {
        snprintf(expected, sizeof(expected), "no less than %s, which is %" PRIu64 " b/s", rates[i].key,
                 rates[i].rate * 8);
        if (rates[i].rate > dcqcn->rate_max_bytes_per_s)
            return complain(scenario, "host", name, "dcqcn_rate_max", expected, complaint);
    }
    return true;
}

bool alb_scenario_engine_agrees(const struct alb_scenario *scenario, const char *name,
                                const struct alb_engine_config *config, struct alb_complaint *complaint)
{
    const char *const section = "host";
    struct alb_engine_config with_parameters = *config, *engine = &with_parameters;
    alb_congestion_set(engine); // what the policies' names give; that it agrees with the rest is looked at here
    alb_credit_set(engine);
    uint32_t segments = engine->csa_window_segments;
    if (engine->window_min_bytes > engine->window_max_bytes)
        return complain(scenario, section, name, "window_min", "no more than window_max", complaint);
    if (engine->window_start_bytes < engine->window_min_bytes || engine->window_start_bytes > engine->window_max_bytes)
        return complain(scenario, section, name, "window_start", "a size from window_min to window_max", complaint);
    if (!is_power_of_two(segments) || segments < 4 || segments > 1u << 22)
        return complain(scenario, section, name, "window_segments", "a power of two from 4 to 4194304", complaint);
    return dcqcn_agrees(scenario, name, &engine->dcqcn, complaint) && pool_agrees(scenario, name, engine, complaint);
}

// ---- hosts of several sections --------------------------------------------------------------------------------------

static bool is_of_host(const struct alb_document_entry *entry, uint32_t host)
{
    return strcmp(entry->section, "host") == 0 && entry->name[0] && alb_scenario_lists(entry->name, host);
}

static uint32_t count_sections(const struct alb_scenario *scenario, uint32_t host)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scenario->document.count; i++)
        count += !scenario->document.entries[i].key[0] && is_of_host(&scenario->document.entries[i], host);
    return count;
}

static bool has_same_sections(const struct alb_scenario *scenario, uint32_t host, uint32_t other)
{
    for (uint32_t i = 0; i < scenario->document.count; i++)
        if (is_of_host(&scenario->document.entries[i], host) != is_of_host(&scenario->document.entries[i], other))
            return false;
    return true;
}

// As if one section said all that those of the host say, each key where it is said last.
static bool sections_agree(const struct alb_scenario *scenario, uint32_t host, const struct alb_engine_config *engine,
                           struct alb_complaint *complaint)
{
    struct alb_scenario joined = {0};
    char path[2 * ALB_DOCUMENT_WORD_MAX];
    alb_document_copy(&joined.document, &scenario->document);
    for (uint32_t i = 0; i < scenario->document.count; i++) {
        const struct alb_document_entry *entry = &scenario->document.entries[i];
        if (!entry->key[0] || !is_of_host(entry, host))
            continue;
        snprintf(path, sizeof(path), "host.joined.%s", entry->key);
        alb_document_put(&joined.document, path, entry->value, entry->file, entry->line, complaint);
    }
    alb_document_begin(&joined.document, joined.document.count - 1);
    bool is_good = alb_scenario_engine_agrees(&joined, "joined", engine, complaint);
    alb_document_fini(&joined.document);
    return is_good;
}

bool alb_scenario_host_lists_agree(const struct alb_scenario *scenario, uint32_t host_count,
                                   struct alb_complaint *complaint)
{
    for (uint32_t host = 0; host < host_count; host++) {
        struct alb_engine_config engine = scenario->engine;
        bool is_alone = count_sections(scenario, host) < 2; // which has been looked at
        if (is_alone || (host > 0 && has_same_sections(scenario, host, host - 1)))
            continue;
        alb_scenario_change_host(scenario, host, &engine);
        if (!sections_agree(scenario, host, &engine, complaint))
            return false;
    }
    return true;
}

// ---- switches -------------------------------------------------------------------------------------------------------

enum {
    RC_HEADER_BYTES = 32, // of a WRITE's first packet, with its ICRC
};

// A key that says something only where another one says so too.
struct dependent {
    const char *key;
    uint64_t value; // 0: it asks for nothing
    bool has_effect;
    const char *expected;
};

static bool has_effect(const struct alb_scenario *scenario, const struct dependent *dependent,
                       struct alb_complaint *complaint)
{
    return dependent->has_effect || dependent->value == 0 ||
           !alb_document_find(&scenario->document, "switch", "", dependent->key) ||
           complain(scenario, "switch", "", dependent->key, dependent->expected, complaint);
}

// What is asked for and would change nothing, as a limit that is never looked at.
static bool all_have_effect(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    const struct alb_switch_config *switches = &scenario->switches;
    bool is_free = switches->flow_control == ALB_FLOW_CONTROL_NONE;
    bool is_pfc = switches->flow_control == ALB_FLOW_CONTROL_PFC;
    bool is_credits = switches->flow_control == ALB_FLOW_CONTROL_CREDITS;
    const struct dependent dependents[] = {
        {"port_buffer", switches->port_bytes_max, is_free,
         "flow_control = none for it; with pfc buffer, alpha and pfc_xoff bound what waits, with credits "
         "credit_buffer"},
        {"buffer", switches->buffer_bytes, !is_credits, "credit_buffer instead, with flow_control = credits"},
        {"alpha", switches->alpha_16ths, switches->buffer_bytes > 0 && !is_credits,
         "buffer too, of whose free part it is a multiple, and no credits"},
        {"credit_buffer", switches->credit_bytes, is_credits, "flow_control = credits for it"},
        {"pfc_xoff", switches->pfc_xoff_bytes, is_pfc, "flow_control = pfc for it"},
        {"pfc_xon_gap", switches->pfc_xon_gap_bytes, is_pfc, "flow_control = pfc for it"},
        {"pfc_headroom", switches->pfc_headroom_bytes, is_pfc, "flow_control = pfc for it"},
        {"trim_buffer", switches->trim_bytes_max, switches->trims, "trim = yes for it"},
    };
    for (size_t i = 0; i < ALB_COUNT(dependents); i++)
        if (!has_effect(scenario, &dependents[i], complaint))
            return false;
    return true;
}

// A pause is sent before the buffer is full, and taken back when some of what was there has left. Without pfc_xoff
// alpha says when, as a part of the buffer.
static bool pauses_agree(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    const struct alb_switch_config *switches = &scenario->switches;
    uint64_t xoff = switches->pfc_xoff_bytes, buffer = switches->buffer_bytes;
    bool has_gap = alb_document_find(&scenario->document, "switch", "", "pfc_xon_gap");
    if (switches->flow_control != ALB_FLOW_CONTROL_PFC)
        return true;
    if (xoff && buffer && xoff > buffer)
        return complain(scenario, "switch", "", "pfc_xoff", "no more than buffer, beyond which nothing is held",
                        complaint);
    return !has_gap || switches->pfc_xon_gap_bytes <= (xoff ? xoff : buffer) ||
           complain(scenario, "switch", "", "pfc_xon_gap", xoff ? "no more than pfc_xoff" : "no more than buffer",
                    complaint);
}

// What the longest packets of hosts take of a buffer.
static uint64_t packet_bytes(const struct alb_scenario_host *host)
{
    uint32_t load = host->transport ? host->payload_bytes : host->mtu_bytes + RC_HEADER_BYTES; // csa fills a packet
    return ALB_SIM_FRAME_BYTES + load;
}

// What the dynamic threshold leaves one port of an empty buffer.
static uint64_t share_bytes(const struct alb_switch_config *switches)
{
    uint64_t all = switches->buffer_bytes;
    return switches->alpha_16ths && switches->flow_control == ALB_FLOW_CONTROL_NONE
               ? ALB_MIN(all, all / 16 * switches->alpha_16ths)
               : all;
}

static bool packets_pass(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    const struct alb_switch_config *switches = &scenario->switches;
    uint64_t needed_bytes = packet_bytes(&scenario->host);
    const struct {
        const char *key;
        uint64_t set, given; // 0: no limit
    } sizes[] = {
        {"port_buffer", switches->port_bytes_max, switches->port_bytes_max},
        {"credit_buffer", switches->credit_bytes, switches->credit_bytes},
        {"buffer", switches->buffer_bytes, switches->buffer_bytes},
        {"pfc_headroom", switches->pfc_headroom_bytes, switches->pfc_headroom_bytes},
        {"alpha", switches->buffer_bytes, share_bytes(switches)},
    };
    char expected[96];
    snprintf(expected, sizeof(expected), "room for a packet of hosts, %" PRIu64 " bytes on the wire, or more",
             needed_bytes);
    for (size_t i = 0; i < ALB_COUNT(sizes); i++)
        if (sizes[i].set && sizes[i].given < needed_bytes &&
            alb_document_find(&scenario->document, "switch", "", sizes[i].key))
            return complain(scenario, "switch", "", sizes[i].key, expected, complaint);
    return true;
}

bool alb_scenario_switches_agree(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    const struct alb_switch_config *switches = &scenario->switches;
    if (switches->mark_max_bytes && switches->mark_min_bytes >= switches->mark_max_bytes)
        return complain(scenario, "switch", "", "mark_min", "less than mark_max", complaint);
    if (switches->trims && switches->flow_control != ALB_FLOW_CONTROL_NONE)
        return complain(scenario, "switch", "", "trim", "no trimming where flow_control keeps buffers from overflowing",
                        complaint);
    // A buffer without end never fills, so that nothing would ever be paused.
    if (switches->flow_control == ALB_FLOW_CONTROL_PFC && !switches->buffer_bytes && !switches->pfc_xoff_bytes)
        return complain(scenario, "switch", "", "flow_control", "buffer or pfc_xoff too: from where on pfc pauses",
                        complaint);
    return all_have_effect(scenario, complaint) && pauses_agree(scenario, complaint) &&
           packets_pass(scenario, complaint);
}

bool alb_scenario_host_agrees(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    return is_power_of_two(scenario->host.mtu_bytes) ||
           complain(scenario, "host", "", "mtu", "256, 512, 1024, 2048 or 4096", complaint);
}
