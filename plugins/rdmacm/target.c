// SPDX-License-Identifier: BSD-2-Clause
// Where a request goes: to the slot of its listener, or to the holder of port 4791.
#include "plugins/rdmacm/door.h"

#include "device/directory.h"
#include "device/slot.h"
#include "plugins/verbs/bridge.h"

#include <string.h>
#include <unistd.h>

// True if some process receives what is sent to port 4791 of an address of this host.
static bool has_front(const struct alb_addr *addr)
{
    struct alb_socket probe;
    if (alb_slot_bind(addr, 1, ALB_ROCE_PORT, &probe) != 0)
        return true;
    alb_socket_close(&probe);
    return false;
}

static uint8_t gsi_index(void)
{
    return alb_engine_configuration(rdmacm_engine())->gsi_index;
}

// True if the holder of port 4791 is known and is a device of another kind, which does not answer requests to ours.
static bool has_other_front(void)
{
    struct alb_directory directory;
    struct alb_directory_board board;
    bool is_other = false;
    if (alb_directory_open(&directory, geteuid()) != 0)
        return false;
    while (!is_other && alb_directory_next(&directory, &board)) {
        is_other = board.header.slot == 0 && board.header.net_namespace == alb_board_net_namespace() &&
                   strcmp(board.header.device, ibv_get_device_name(rdmacm_context()->device)) != 0;
        alb_directory_unmap(&board);
    }
    alb_directory_close(&directory);
    return is_other;
}

// The slot of a listener on this host.
static bool find_listener(const struct rdmacm_id *id, uint8_t *slot)
{
    uint64_t service_id =
        alb_cm_service_id((enum alb_cm_port_space)id->id.ps, rdmacm_port(&id->id.route.addr.dst_storage));
    return albedo_bridge_claim_find(gsi_index(), service_id, &id->av.peer, slot) == 0;
}

// One may listen by now (RDMACM_REFUSALS says why). Called with the token held.
static alb_qpn find_again(void *user, alb_qpn last)
{
    uint8_t slot;
    return find_listener(user, &slot) ? (alb_qpn)slot << 16 | gsi_index() : last;
}

struct alb_cm_target rdmacm_target_of(const struct rdmacm_id *id)
{
    struct alb_cm_target target = {.av = id->av, .gsi_qpn = gsi_index(), .refusals = RDMACM_REFUSALS};
    uint8_t slot;
    if (!id->av.same_host)
        return target;
    target.find = find_again;
    if (find_listener(id, &slot))
        target.gsi_qpn |= (alb_qpn)slot << 16;
    else if (!has_front(&id->av.peer) || has_other_front())
        target.gsi_qpn |= (alb_qpn)alb_device_slot(rdmacm_device()) << 16;
    return target;
}
