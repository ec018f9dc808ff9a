// SPDX-License-Identifier: BSD-2-Clause
// Ids: life, addresses, listening.
#include "plugins/rdmacm/door.h"

#include "device/address.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT_FIRST = 32768, // of those given to who asks for any
    PORT_COUNT = 28232,
    PORT_ATTEMPTS = 1000,
    BACKLOG_MAX = 1024,
};

// ---- addresses ------------------------------------------------------------------------------------------------------

void rdmacm_set_sockaddr(struct sockaddr_storage *out, const struct alb_addr *addr, uint16_t port)
{
    memset(out, 0, sizeof(*out));
    if (alb_addr_is_ipv4(addr)) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, addr->bytes + 12, 4);
        return;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, addr->bytes, 16);
}

bool rdmacm_get_sockaddr(const struct sockaddr *sockaddr, struct alb_addr *addr, uint16_t *port)
{
    if (sockaddr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)sockaddr;
        uint8_t bytes[4];
        memcpy(bytes, &in->sin_addr, sizeof(bytes));
        *addr = alb_addr_from_ipv4(bytes);
        *port = ntohs(in->sin_port);
        return true;
    }
    if (sockaddr->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sockaddr;
    memcpy(addr->bytes, &in6->sin6_addr, 16);
    *port = ntohs(in6->sin6_port);
    return true;
}

uint16_t rdmacm_port(const struct sockaddr_storage *storage)
{
    struct alb_addr addr;
    uint16_t port;
    return rdmacm_get_sockaddr((const struct sockaddr *)storage, &addr, &port) ? port : 0;
}

static const struct alb_addr any, any_ipv4 = {{[10] = 0xff, [11] = 0xff}};

static bool is_any(const struct alb_addr *addr)
{
    return alb_addr_equals(addr, &any) || alb_addr_equals(addr, &any_ipv4);
}

// EADDRNOTAVAIL: it is not an address of this host; ENODEV: it is, but not of the device.
static int find_gid(const struct alb_addr *addr, uint32_t *index)
{
    struct alb_address_info info;
    const struct alb_addr *gid;
    for (uint32_t i = 0; (gid = alb_device_gid(rdmacm_device(), i)); i++)
        if (alb_addr_equals(gid, addr)) {
            *index = i;
            return 0;
        }
    return alb_address_find(addr, &info) ? ENODEV : EADDRNOTAVAIL;
}

// Where the device has no loopback address of that family, a loopback address stands for any address: so does the
// kernel's rdma_cm, and libfabric binds to "localhost" to learn what there is.
static bool stands_for_any(const struct alb_addr *addr)
{
    const struct alb_addr *gid;
    if (is_any(addr) || !alb_address_is_loopback(addr))
        return is_any(addr);
    for (uint32_t i = 0; (gid = alb_device_gid(rdmacm_device(), i)); i++)
        if (alb_address_is_loopback(gid) && alb_addr_is_ipv4(gid) == alb_addr_is_ipv4(addr))
            return false;
    return true;
}

// The address that the host would send from; what a socket connected there says.
static int route_to(const struct alb_addr *peer, struct alb_addr *local)
{
    struct sockaddr_storage storage;
    socklen_t length = sizeof(storage);
    uint16_t port;
    rdmacm_set_sockaddr(&storage, peer, 1);
    int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    socklen_t peer_length = storage.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int error =
        connect(fd, (struct sockaddr *)&storage, peer_length) || getsockname(fd, (struct sockaddr *)&storage, &length)
            ? errno
            : 0;
    close(fd);
    return error ? error : rdmacm_get_sockaddr((struct sockaddr *)&storage, local, &port) ? 0 : EAFNOSUPPORT;
}

// Binds to the device: the id's address is one of its.
static int attach(struct rdmacm_id *id, const struct alb_addr *local, uint16_t port)
{
    int error = find_gid(local, &id->gid_index);
    if (error)
        return error;
    id->id.verbs = rdmacm_context();
    id->id.port_num = RDMACM_PORT;
    id->is_any = false;
    rdmacm_set_sockaddr(&id->id.route.addr.src_storage, local, port);
    memcpy(id->id.route.addr.addr.ibaddr.sgid.raw, local->bytes, 16);
    id->id.route.addr.addr.ibaddr.pkey = htons(ALB_PKEY_DEFAULT);
    if (!id->id.pd)
        id->id.pd = rdmacm_default_pd();
    return 0;
}

int rdmacm_learn_av(struct rdmacm_id *id, const struct alb_addr *local, const struct alb_addr *peer)
{
    int error = attach(id, local, rdmacm_port(&id->id.route.addr.src_storage));
    if (!error)
        error = alb_device_resolve(rdmacm_device(), id->gid_index, peer, &id->av);
    id->av.traffic_class = id->tos;
    id->av.hop_limit = RDMACM_HOP_LIMIT;
    memcpy(id->id.route.addr.addr.ibaddr.dgid.raw, peer->bytes, 16);
    return error;
}

// ---- life -----------------------------------------------------------------------------------------------------------

struct rdmacm_id *rdmacm_id_new(struct rdmacm_channel *channel, void *context, enum rdma_port_space ps,
                                enum ibv_qp_type type)
{
    struct rdmacm_id *id = calloc(1, sizeof(*id));
    if (!id)
        return NULL;
    id->is_sync = !channel;
    if (!channel && !(channel = rdmacm_channel_create())) {
        int error = errno;
        free(id);
        errno = error;
        return NULL;
    }
    id->device = rdmacm_device();
    alb_list_init(&id->link);
    rdmacm_channel_join(channel, id);
    id->id.context = context;
    id->id.ps = ps;
    id->id.qp_type = type;
    id->claim.fd = -1;
    id->retry_count = id->rnr_retry_count = 7;
    pthread_mutex_init(&id->lock, NULL);
    pthread_cond_init(&id->acknowledged, NULL);
    alb_list_init(&id->multicasts);
    alb_list_init(&id->reserve);
    return id;
}

static bool is_known_space(enum rdma_port_space ps)
{
    return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context, enum rdma_port_space ps)
{
    if (!rdmacm_context())
        return -1;
    if (!is_known_space(ps))
        return rdmacm_fail(EINVAL);
    if (channel && rdmacm_channel_is_forked(rdmacm_channel(channel)))
        return rdmacm_fail(ENODEV);
    struct rdmacm_id *id = rdmacm_id_new(channel ? rdmacm_channel(channel) : NULL, context, ps,
                                         ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC);
    if (!id)
        return -1;
    *out = &id->id;
    return 0;
}

void rdmacm_id_free(struct rdmacm_id *id)
{
    alb_cm_claim_end(&id->claim);
    if (id->is_sync)
        rdma_destroy_event_channel(id->id.channel);
    rdmacm_channel_leave(id);
    pthread_cond_destroy(&id->acknowledged);
    pthread_mutex_destroy(&id->lock);
    rdmacm_event_unreserve(id);
    free(id->ep_attr);
    free(id);
}

int rdma_destroy_id(struct rdma_cm_id *outer)
{
    if (!outer)
        return rdmacm_fail(EINVAL);
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return 0;
    rdmacm_lock();
    if (id->cm)
        alb_cm_id_destroy(id->cm, alb_device_now());
    id->cm = NULL;
    rdmacm_unlock();
    rdmacm_drop_kept(id);
    rdmacm_forget_events(id);
    pthread_mutex_lock(&id->lock);
    while (id->completed != id->taken)
        pthread_cond_wait(&id->acknowledged, &id->lock);
    pthread_mutex_unlock(&id->lock);
    rdmacm_multicast_leave_all(id);
    rdmacm_id_free(id);
    return 0;
}

// ---- binding and listening ------------------------------------------------------------------------------------------

static int claim(struct rdmacm_id *id, const struct alb_addr *addr, uint16_t port)
{
    struct alb_cm_place place = {
        .gsi_index = alb_engine_configuration(rdmacm_engine())->gsi_index,
        .service_id = alb_cm_service_id((enum alb_cm_port_space)id->id.ps, port),
        .addr = *addr,
        .is_one_family = id->is_one_family,
        .slot = alb_device_slot(rdmacm_device()),
    };
    return alb_cm_claim(&id->claim, &place);
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
    if (!is_any(wanted) && stands_for_any(wanted))
        addr = alb_addr_is_ipv4(wanted) ? &any_ipv4 : &any;
    int error = is_any(addr) ? 0 : find_gid(addr, &index);
    if (!error)
        error = port ? claim(id, addr, port) : claim_any(id, addr, &port);
    if (error)
        return error;
    if (id->is_reusable)
        alb_cm_claim_end(&id->claim);
    id->is_bound = true;
    id->is_any = is_any(addr);
    if (!id->is_any)
        return attach(id, addr, port);
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
    if (id->is_bound || id->is_resolved || id->cm || !sockaddr)
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
    if (!error && (error = alb_cm_listen(id->cm, &listen))) {
        alb_cm_id_destroy(id->cm, alb_device_now());
        id->cm = NULL;
    }
    rdmacm_unlock();
    id->is_listening = !error;
    return error ? error : alb_cm_claim_listen(&id->claim);
}

int rdma_listen(struct rdma_cm_id *outer, int backlog)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (id->cm || id->is_resolved)
        return rdmacm_fail(EINVAL);
    int error = rdmacm_channel_error(id);
    if (!error && !id->is_bound)
        error = bind_to(id, &any_ipv4, 0);
    if (!error && id->is_reusable)
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
    return port || !is_any(&addr) ? bind_to(id, &addr, port) : 0;
}

static int choose_local(const struct rdmacm_id *id, const struct alb_addr *peer, struct alb_addr *local)
{
    uint16_t port;
    uint32_t index;
    if (id->is_bound && !id->is_any)
        return rdmacm_get_sockaddr(&id->id.route.addr.src_addr, local, &port) ? 0 : EINVAL;
    if (find_gid(peer, &index) == 0) { // ourselves
        *local = *peer;
        return 0;
    }
    return route_to(peer, local);
}

// A port for who did not ask for one; nobody listens there, so nothing has to be claimed.
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

static int resolve(struct rdmacm_id *id, const struct alb_addr *peer, uint16_t port)
{
    struct alb_addr local;
    int error = choose_local(id, peer, &local);
    if (!error)
        error = rdmacm_learn_av(id, &local, peer);
    if (error)
        return error;
    give_port(id);
    rdmacm_set_sockaddr(&id->id.route.addr.dst_storage, peer, port);
    id->is_resolved = true;
    return 0;
}

// What the arguments are wrong about is said at once, what the network is wrong about by an event. After that one it
// may be tried again; once resolved, an id stays so.
int rdma_resolve_addr(struct rdma_cm_id *outer, struct sockaddr *source, struct sockaddr *destination, int timeout_ms)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    struct alb_addr peer;
    uint16_t port;
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (id->cm || id->is_resolved || !destination)
        return rdmacm_fail(EINVAL);
    if (!rdmacm_get_sockaddr(destination, &peer, &port))
        return rdmacm_fail(EAFNOSUPPORT);
    int error = bind_source(id, source);
    if (error)
        return rdmacm_fail(error);
    error = resolve(id, &peer, port);
    error = rdmacm_post_plain(id, error ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -error);
    return rdmacm_result(error ? error : rdmacm_complete(id));
}

int rdma_resolve_route(struct rdma_cm_id *outer, int timeout_ms)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (id->cm || !id->is_resolved || id->has_route)
        return rdmacm_fail(EINVAL);
    id->path = (struct ibv_sa_path_rec){
        .hop_limit = RDMACM_HOP_LIMIT,
        .traffic_class = id->tos,
        .reversible = 1,
        .numb_path = 1,
        .pkey = htons(ALB_PKEY_DEFAULT),
        .mtu_selector = 2, // exactly
        .mtu = (uint8_t)(__builtin_ctz(alb_device_mtu_bytes(rdmacm_device())) - 7),
        .packet_life_time_selector = 2,
        .packet_life_time = RDMACM_ACK_CODE - 1,
    };
    memcpy(id->path.sgid.raw, outer->route.addr.addr.ibaddr.sgid.raw, 16);
    memcpy(id->path.dgid.raw, outer->route.addr.addr.ibaddr.dgid.raw, 16);
    outer->route.path_rec = &id->path;
    outer->route.num_paths = 1;
    int error = rdmacm_post_plain(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    id->has_route = !error;
    return rdmacm_result(error ? error : rdmacm_complete(id));
}

// ---- small questions ------------------------------------------------------------------------------------------------

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return htons(rdmacm_port(&id->route.addr.src_storage));
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return htons(rdmacm_port(&id->route.addr.dst_storage));
}

// In older headers a function, in newer ones inline.
#undef rdma_get_local_addr
#undef rdma_get_peer_addr

struct ibv_context **rdma_get_devices(int *count)
{
    struct ibv_context **list = calloc(2, sizeof(struct ibv_context *));
    if (!list)
        return NULL;
    list[0] = rdmacm_context();
    if (count)
        *count = list[0] ? 1 : 0;
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}

static int set_number(const void *value, size_t length, uint8_t *out, bool *is_set)
{
    if (length != 1)
        return EINVAL;
    *out = *(const uint8_t *)value;
    if (is_set)
        *is_set = true;
    return 0;
}

static int set_flag(const void *value, size_t length, bool *out)
{
    int number;
    if (length != sizeof(number))
        return EINVAL;
    memcpy(&number, value, sizeof(number));
    *out = number != 0;
    return 0;
}

int rdma_set_option(struct rdma_cm_id *outer, int level, int name, void *value, size_t length)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (level == RDMA_OPTION_IB) // path records come from a subnet's administrator, and there is no subnet
        return rdmacm_fail(EOPNOTSUPP);
    if (level != RDMA_OPTION_ID)
        return rdmacm_fail(ENOSYS);
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        return rdmacm_result(set_number(value, length, &id->tos, NULL));
    case RDMA_OPTION_ID_REUSEADDR:
        return rdmacm_result(id->is_bound ? EINVAL : set_flag(value, length, &id->is_reusable));
    case RDMA_OPTION_ID_AFONLY:
        return rdmacm_result(id->is_bound ? EINVAL : set_flag(value, length, &id->is_one_family));
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        return rdmacm_result(length == 1 && *(uint8_t *)value < 32
                                 ? set_number(value, length, &id->ack_timeout, &id->has_ack_timeout)
                                 : EINVAL);
    default:
        return rdmacm_fail(ENOSYS);
    }
}

int rdma_migrate_id(struct rdma_cm_id *outer, struct rdma_event_channel *to)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    struct rdmacm_channel *from = rdmacm_channel(outer->channel);
    if (rdmacm_is_forked(id) || (to && rdmacm_channel_is_forked(rdmacm_channel(to))))
        return rdmacm_fail(ENODEV);
    struct rdmacm_channel *target = to ? rdmacm_channel(to) : rdmacm_channel_create();
    struct alb_list moved;
    if (!target)
        return -1;
    rdmacm_drop_kept(id);
    pthread_mutex_lock(&id->lock);
    while (id->completed != id->taken)
        pthread_cond_wait(&id->acknowledged, &id->lock);
    pthread_mutex_unlock(&id->lock);
    alb_list_init(&moved);
    rdmacm_lock(); // nothing is posted meanwhile
    rdmacm_take_events(id, NULL, &moved);
    bool was_sync = id->is_sync;
    rdmacm_channel_leave(id);
    rdmacm_channel_join(target, id);
    id->is_sync = !to;
    struct alb_list *node;
    while ((node = alb_list_pop(&moved)))
        rdmacm_post(id, ALB_LIST_ENTRY(node, struct rdmacm_event, link));
    rdmacm_unlock();
    if (was_sync)
        rdma_destroy_event_channel(&from->channel);
    return 0;
}
