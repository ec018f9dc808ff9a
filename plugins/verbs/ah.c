// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_ah(3), and address vectors between their two forms.
#include "plugins/verbs/door.h"

#include "base/log.h"
#include "device/address.h"

#include <stdlib.h>

static bool is_zero(const union ibv_gid *gid)
{
    static const union ibv_gid zero;
    return memcmp(gid, &zero, sizeof(zero)) == 0;
}

// What the errno of ibv_modify_qp leaves open.
static void explain(const struct alb_door_context *context, uint32_t gid_index, const struct alb_addr *peer, int error)
{
    char text[ALB_ADDR_TEXT_MAX], peer_text[ALB_ADDR_TEXT_MAX];
    const struct alb_addr *local = alb_device_gid(context->device, gid_index);
    if (error == ENETUNREACH && local)
        alb_log(ALB_LOG_WARNING,
                "GID index %u is %s, and the peer's GID is %s, of another family: choose the index of a GID of that "
                "family, or give both sides such an address (albedo run --net)",
                gid_index, alb_addr_format(local, text), alb_addr_format(peer, peer_text));
    else if (!local)
        alb_log(ALB_LOG_WARNING, "there is no GID with index %u: `ibv_devinfo -v` lists them", gid_index);
}

// It works with a peer of this host only, and looks like a dead one otherwise.
static void doubt(const struct alb_door_context *context, uint32_t gid_index, const struct alb_addr *peer)
{
    char text[ALB_ADDR_TEXT_MAX];
    const struct alb_addr *local = alb_device_gid(context->device, gid_index);
    if (alb_address_is_loopback(peer) && !alb_address_is_loopback(local))
        alb_log(ALB_LOG_WARNING,
                "the peer's GID is %s, so it is taken to be on this host; on another one it has to be started with an "
                "address that others reach (albedo run --net)",
                alb_addr_format(peer, text));
}

int alb_door_av_from_attr(struct alb_door_context *context, const struct ibv_ah_attr *attr, struct alb_av *av)
{
    const struct ibv_global_route *route = &attr->grh;
    struct alb_addr peer;
    // As with any RoCE device; the log line is for users new to RoCE.
    if (!attr->is_global)
        alb_log(ALB_LOG_WARNING, "an address without a GID: RoCE has no LIDs. Give the program a GID index, as in "
                                 "`ibv_rc_pingpong -g 0` or `ib_write_bw -x 0`");
    if (!attr->is_global || attr->port_num != ALB_DOOR_PORT || is_zero(&route->dgid))
        return EINVAL;
    memcpy(peer.bytes, route->dgid.raw, sizeof(peer.bytes));
    *av = (struct alb_av){0};
    int error = alb_device_resolve(context->device, route->sgid_index, &peer, av);
    if (error) {
        explain(context, route->sgid_index, &peer, error);
        return error;
    }
    doubt(context, route->sgid_index, &peer);
    av->gid_index = route->sgid_index;
    av->traffic_class = route->traffic_class;
    av->hop_limit = route->hop_limit;
    av->flow_label = route->flow_label & 0xfffff;
    av->sl = attr->sl;
    return 0;
}

void alb_door_av_to_attr(const struct alb_av *av, struct ibv_ah_attr *attr)
{
    *attr = (struct ibv_ah_attr){
        .grh =
            {
                .flow_label = av->flow_label,
                .sgid_index = av->gid_index,
                .hop_limit = av->hop_limit,
                .traffic_class = av->traffic_class,
            },
        .sl = av->sl,
        .is_global = 1,
        .port_num = ALB_DOOR_PORT,
    };
    memcpy(attr->grh.dgid.raw, av->peer.bytes, sizeof(attr->grh.dgid.raw));
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    if (!pd || !attr)
        return alb_door_fail(EINVAL);
    struct alb_door_context *context = alb_door_context(pd->context);
    struct alb_av av;
    int error = alb_door_av_from_attr(context, attr, &av);
    if (error)
        return alb_door_fail(error);
    struct alb_door_ah *ah = calloc(1, sizeof(*ah));
    if (!ah)
        return alb_door_fail(ENOMEM);
    error = alb_door_lock(context);
    if (!error) {
        error = alb_ah_create(alb_door_engine_pd(pd), &av, &ah->engine_ah);
        alb_door_unlock(context);
    }
    if (error) {
        free(ah);
        return alb_door_fail(error);
    }
    ah->ah = (struct ibv_ah){.context = pd->context, .pd = pd};
    ah->ah.handle = alb_door_remember(context, ALB_DOOR_AH, &ah->link);
    alb_door_pd_get(pd);
    return &ah->ah;
}

int alb_door_ah_release(struct alb_door_ah *ah)
{
    struct alb_door_context *context = alb_door_context(ah->ah.context);
    if (alb_door_is_forked(context))
        return 0;
    alb_device_lock(context->device);
    int error = alb_ah_destroy(ah->engine_ah);
    alb_door_unlock(context);
    if (error)
        return error;
    alb_door_pd_put(ah->ah.pd);
    alb_door_forget(context, &ah->link);
    free(ah);
    return 0;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    return alb_door_answer(ah ? alb_door_ah_release(alb_door_ah(ah)) : EINVAL);
}
