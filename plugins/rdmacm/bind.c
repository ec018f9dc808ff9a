// SPDX-License-Identifier: BSD-2-Clause
// How ids get their places: binding, listening, resolution.
#include "plugins/rdmacm/door.h"

#include "device/address.h"
#include "plugins/verbs/bridge.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
    PORT_FIRST = 32768, // of those given to callers that ask for any
    PORT_COUNT = 28232,
    PORT_ATTEMPTS = 1000,
    BACKLOG_MAX = 1024,
};

// ---- binding and listening ------------------------------------------------------------------------------------------

// Where the device has no loopback address of that family, a loopback address stands for any address: so does the
// kernel's rdma_cm, and libfabric binds to "localhost" to learn what there is.
static bool stands_for_any(const struct alb_addr *addr)
{
    const struct alb_addr *gid;
    if (rdmacm_is_any(addr) || !alb_address_is_loopback(addr))
        return rdmacm_is_any(addr);
    for (uint32_t i = 0; (gid = alb_device_gid(rdmacm_device(), i)); i++)
        if (alb_address_is_loopback(gid) && alb_addr_is_ipv4(gid) == alb_addr_is_ipv4(addr))
            return false;
    return true;
}

static int claim(struct rdmacm_id *id, const struct alb_addr *addr, uint16_t port)
{
    struct alb_cm_place place = {
        .gsi_index = alb_engine_configuration(rdmacm_engine())->gsi_index,
        .service_id = alb_cm_service_id((enum alb_cm_port_space)id->id.ps, port),
        .addr = *addr,
        .is_one_family = id->is_one_family,
        .slot = alb_device_slot(rdmacm_device()),
    };
    return albedo_bridge_claim(&id->claim, &place);
}

static int claim_any(struct rdmacm_id *id, const struct alb_addr *addr, uint16_t *port)
{
    int error = EADDRINUSE;
    for (int i = 0; i < PORT_ATTEMPTS && error == EADDRINUSE; i++) {
        uint32_t random;
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
            return EIO;
        *port = (uint16_t)(PORT_FIRST + random % PORT_COUNT);
        error = claim(id, addr, *port);
    }
    return error;
}

static int bind_to(struct rdmacm_id *id, const struct alb_addr *wanted, uint16_t port)
{
    uint32_t index;
    const struct alb_addr *addr = wanted;
    if (!rdmacm_is_any(wanted) && stands_for_any(wanted))
        addr = alb_addr_is_ipv4(wanted) ? &rdmacm_any_ipv4 : &rdmacm_any;
    int error = rdmacm_is_any(addr) ? 0 : rdmacm_find_gid(addr, &index);
    if (!error)
        error = port ? claim(id, addr, port) : claim_any(id, addr, &port);
    if (error)
        return error;
    if (id->is_reusable)
        albedo_bridge_claim_end(&id->claim);
    id->is_bound = true;
    id->is_any = rdmacm_is_any(addr);
    if (!id->is_any)
        return rdmacm_attach(id, addr, port);
    rdmacm_set_sockaddr(&id->id.route.addr.src_storage, addr, port);
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *outer, struct sockaddr *sockaddr)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    struct alb_addr addr;
    uint16_t port;
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (id->is_bound || id->is_resolved || rdmacm_is_begun(id) || !sockaddr)
        return rdmacm_fail(EINVAL);
    if (!rdmacm_get_sockaddr(sockaddr, &addr, &port))
        return rdmacm_fail(EAFNOSUPPORT);
    return rdmacm_result(bind_to(id, &addr, port));
}

static int claim_bound(struct rdmacm_id *id)
{
    struct alb_addr addr = {0};
    uint16_t port = 0;
    rdmacm_get_sockaddr(&id->id.route.addr.src_addr, &addr, &port);
    return claim(id, &addr, port);
}

int rdmacm_set_one_family(struct rdmacm_id *id, bool is_one_family)
{
    bool was = id->is_one_family, is_any_ipv6 = id->is_any && id->id.route.addr.src_storage.ss_family == AF_INET6;
    id->is_one_family = is_one_family;
    if (!is_any_ipv6 || id->claim.fd < 0 || was == is_one_family)
        return 0;
    albedo_bridge_claim_end(&id->claim);
    int error = claim_bound(id);
    if (error) {
        id->is_one_family = was;
        claim_bound(id); // or when it listens
    }
    return error;
}

static int listen_now(struct rdmacm_id *id, int backlog)
{
    struct alb_addr addr = {0};
    uint16_t port = 0;
    rdmacm_get_sockaddr(&id->id.route.addr.src_addr, &addr, &port);
    struct alb_cm_listen listen = {
        .service_id = alb_cm_service_id((enum alb_cm_port_space)id->id.ps, port),
        .addr = addr,
        .is_one_family = id->is_one_family,
        .backlog = backlog > 0 && backlog < BACKLOG_MAX ? (uint32_t)backlog : BACKLOG_MAX,
    };
    rdmacm_lock();
    int error = alb_cm_id_create(rdmacm_engine(), id, &id->cm);
    if (!error)
        error = alb_cm_listen(id->cm, &listen);
    if (!error)
        error = albedo_bridge_claim_listen(&id->claim);
    if (error && id->cm) {
        alb_cm_id_destroy(id->cm, alb_device_now());
        id->cm = NULL;
    }
    rdmacm_unlock();
    id->is_listening = !error;
    if (error && id->is_reusable) // as it was bound
        albedo_bridge_claim_end(&id->claim);
    return error;
}

int rdma_listen(struct rdma_cm_id *outer, int backlog)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (rdmacm_is_begun(id) || id->is_resolved)
        return rdmacm_fail(EINVAL);
    int error = rdmacm_channel_error(id);
    if (!error && !id->is_bound)
        error = bind_to(id, &rdmacm_any_ipv4, 0);
    if (!error && id->claim.fd < 0)
        error = claim_bound(id);
    return rdmacm_result(error ? error : listen_now(id, backlog));
}

// ---- resolution -----------------------------------------------------------------------------------------------------

// Binds to the source that is asked for, unless it leaves everything open.
static int bind_source(struct rdmacm_id *id, const struct sockaddr *source)
{
    struct alb_addr addr;
    uint16_t port;
    if (id->is_bound || !source)
        return 0;
    if (!rdmacm_get_sockaddr(source, &addr, &port))
        return EAFNOSUPPORT;
    return port || !rdmacm_is_any(&addr) ? bind_to(id, &addr, port) : 0;
}

// As the kernel asks it, of what the id is bound to, or of a source that leaves the address open. An IPv4 address
// within an IPv6 one is of both families.
static bool families_agree(const struct rdmacm_id *id, const struct sockaddr *source,
                           const struct sockaddr *destination, const struct alb_addr *peer)
{
    sa_family_t of_peer = alb_addr_is_ipv4(peer) ? AF_INET : AF_INET6, own = id->id.route.addr.src_storage.ss_family;
    if (!id->is_bound)
        own = source ? source->sa_family : destination->sa_family;
    return own == destination->sa_family || own == of_peer;
}

// A port for a caller that did not ask for one; nothing listens there, so nothing has to be claimed.
static void give_port(struct rdmacm_id *id)
{
    uint32_t random = 0;
    struct alb_addr local = {0};
    uint16_t port = 0;
    rdmacm_get_sockaddr(&id->id.route.addr.src_addr, &local, &port);
    if (port || getrandom(&random, sizeof(random), 0) != sizeof(random))
        return;
    rdmacm_set_sockaddr(&id->id.route.addr.src_storage, &local, (uint16_t)(PORT_FIRST + random % PORT_COUNT));
}

static int resolve(struct rdmacm_id *id, struct alb_addr *peer, uint16_t port)
{
    struct alb_addr local;
    int error = rdmacm_route(id, peer, &local);
    if (!error)
        error = rdmacm_learn_av(id, &local, peer);
    if (error)
        return error;
    give_port(id);
    rdmacm_set_sockaddr(&id->id.route.addr.dst_storage, peer, port);
    id->is_resolved = true;
    return 0;
}

static int report(struct rdmacm_id *id, enum rdma_cm_event_type type, int status)
{
    rdmacm_lock();
    int error = rdmacm_post_plain(id, type, status);
    rdmacm_unlock();
    return error;
}

// Wrong arguments are reported at once, network errors by an event, after which it may be tried again; once resolved,
// an id stays so.
int rdma_resolve_addr(struct rdma_cm_id *outer, struct sockaddr *source, struct sockaddr *destination, int timeout_ms)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    struct alb_addr peer;
    uint16_t port;
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (rdmacm_is_begun(id) || id->is_resolved || !destination)
        return rdmacm_fail(EINVAL);
    if (!rdmacm_get_sockaddr(destination, &peer, &port))
        return rdmacm_fail(EAFNOSUPPORT);
    int error = bind_source(id, source);
    if (error)
        return rdmacm_fail(error);
    if (!families_agree(id, source, destination, &peer))
        return rdmacm_fail(EINVAL);
    error = resolve(id, &peer, port);
    if (error)
        rdmacm_why_no_address(&peer, port, error);
    error = report(id, error ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -error);
    return rdmacm_result(error ? error : rdmacm_complete(id));
}

void rdmacm_set_path(struct rdmacm_id *id, uint8_t mtu_code, uint8_t ack_code)
{
    struct rdma_route *route = &id->id.route;
    id->path = (struct ibv_sa_path_rec){
        .hop_limit = RDMACM_HOP_LIMIT,
        .traffic_class = id->tos,
        .reversible = 1,
        .numb_path = 1,
        .pkey = htons(ALB_PKEY_DEFAULT),
        .mtu_selector = 2, // exactly
        .mtu = mtu_code,
        .packet_life_time_selector = 2,
        .packet_life_time = ack_code ? ack_code - 1 : 0, // there and back is twice as long
    };
    memcpy(id->path.sgid.raw, route->addr.addr.ibaddr.sgid.raw, 16);
    memcpy(id->path.dgid.raw, route->addr.addr.ibaddr.dgid.raw, 16);
    route->path_rec = &id->path;
    route->num_paths = 1;
}

int rdma_resolve_route(struct rdma_cm_id *outer, int timeout_ms)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (rdmacm_is_begun(id) || !id->is_resolved || id->has_route)
        return rdmacm_fail(EINVAL);
    rdmacm_set_path(id, rdmacm_mtu_code(), RDMACM_ACK_CODE);
    id->has_route = true; // before another thread takes the event
    int error = report(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    if (error)
        id->has_route = false;
    return rdmacm_result(error ? error : rdmacm_complete(id));
}
