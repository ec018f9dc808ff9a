// SPDX-License-Identifier: BSD-2-Clause
// Whatever the system refuses a program, each call in turn: memory, descriptors, threads. What the program asked for
// fails with an errno, or is there all the same; nothing is left behind, and nothing hangs. The calls defined here
// stand in front of the C library's, for the libraries too.
#include "fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Sanitizers have such calls themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    return 0;
}
#else

// ---- calls that may be refused --------------------------------------------------------------------------------------

static _Atomic unsigned left;       // calls until one is refused, in whichever thread; 0: none is
static const char *_Atomic refused; // its name
static _Atomic long blocks;         // of memory in use
static _Atomic bool is_spent;       // there is no memory at all

static bool refuses(const char *name)
{
    unsigned now = atomic_load(&left);
    while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1))
        ;
    if (now == 1)
        refused = name;
    return now == 1;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add(&blocks, 1);
    else
        errno = ENOMEM;
    return block;
}

void *malloc(size_t bytes)
{
    return counted(is_spent || refuses("malloc") ? NULL : __libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return counted(is_spent || refuses("calloc") ? NULL : __libc_calloc(count, bytes));
}

void *realloc(void *block, size_t bytes)
{
    if (refuses("realloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return block ? __libc_realloc(block, bytes) : counted(__libc_malloc(bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return counted(refuses("aligned_alloc") ? NULL : __libc_memalign(alignment, bytes));
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    void *got = counted(refuses("posix_memalign") ? NULL : __libc_memalign(alignment, bytes));
    if (got)
        *block = got;
    return got ? 0 : ENOMEM;
}

void free(void *block)
{
    if (block)
        atomic_fetch_sub(&blocks, 1);
    __libc_free(block);
}

#define FOR_EACH_CALL(X)                                                                                             \
    X(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE)                           \
    X(int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length), EADDRNOTAVAIL)   \
    X(int, connect, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length), EHOSTUNREACH) \
    X(int, getsockname, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length), ENOBUFS)       \
    X(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t length),                           \
      (fd, level, name, value, length), ENOPROTOOPT)                                                                 \
    X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *length),                                \
      (fd, level, name, value, length), ENOPROTOOPT)                                                                 \
    X(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE)                                             \
    X(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE)                                  \
    X(int, ftruncate, (int fd, off_t length), (fd, length), EFBIG)                                                   \
    X(int, fallocate, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length), ENOSPC)            \
    X(int, flock, (int fd, int operation), (fd, operation), ENOLCK)                                                  \
    X(int, fstat, (int fd, struct stat *status), (fd, status), ENOMEM)                                               \
    X(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC)                                             \
    X(ssize_t, pwrite, (int fd, const void *bytes, size_t count, off_t at), (fd, bytes, count, at), ENOSPC)          \
    X(ssize_t, getrandom, (void *bytes, size_t count, unsigned flags), (bytes, count, flags), ENOSYS)                \
    X(int, getifaddrs, (struct ifaddrs * *list), (list), ENOBUFS)

#define DEFINE_CALL(type, name, parameters, arguments, error) \
    static type(*real_##name) parameters;                     \
    type name parameters                                      \
    {                                                         \
        if (!refuses(#name))                                  \
            return real_##name arguments;                     \
        errno = (error);                                      \
        return -1;                                            \
    }
FOR_EACH_CALL(DEFINE_CALL)

static void *(*real_mmap)(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
static int (*real_open)(const char *path, int flags, ...);
static int (*real_openat)(int folder, const char *path, int flags, ...);
static int (*real_fcntl)(int fd, int command, ...);
static long (*real_syscall)(long number, ...);
static int (*real_pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                                  void *argument);

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (!refuses("mmap"))
        return real_mmap(at, bytes, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

#define VARIABLE(last, variable)        \
    va_list more;                       \
    va_start(more, last);               \
    long variable = va_arg(more, long); \
    va_end(more);

int open(const char *path, int flags, ...)
{
    VARIABLE(flags, mode)
    if (!refuses("open"))
        return real_open(path, flags, mode);
    errno = EMFILE;
    return -1;
}

int openat(int folder, const char *path, int flags, ...)
{
    VARIABLE(flags, mode)
    if (!refuses("openat"))
        return real_openat(folder, path, flags, mode);
    errno = EMFILE;
    return -1;
}

int fcntl(int fd, int command, ...)
{
    VARIABLE(command, argument)
    if (!refuses("fcntl"))
        return real_fcntl(fd, command, argument);
    errno = EMFILE;
    return -1;
}

// Those of epoll are made like this (device/syscalls.h).
long syscall(long number, ...)
{
    long arguments[6];
    va_list more;
    va_start(more, number);
    for (size_t i = 0; i < 6; i++)
        arguments[i] = va_arg(more, long);
    va_end(more);
    bool is_refused =
        (number == SYS_epoll_create1 && refuses("epoll_create1")) || (number == SYS_epoll_ctl && refuses("epoll_ctl"));
    if (!is_refused)
        return real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    errno = number == SYS_epoll_ctl ? ENOSPC : EMFILE;
    return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    return refuses("pthread_create") ? EAGAIN : real_pthread_create(thread, attributes, run, argument);
}

// Before anything else runs: the first call of each would have to look for the C library's.
__attribute__((constructor)) static void find_calls(void)
{
#define FIND_CALL(type, name, parameters, arguments, error) *(void **)&real_##name = dlsym(RTLD_NEXT, #name);
    FOR_EACH_CALL(FIND_CALL)
    *(void **)&real_mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&real_open = dlsym(RTLD_NEXT, "open");
    *(void **)&real_openat = dlsym(RTLD_NEXT, "openat");
    *(void **)&real_fcntl = dlsym(RTLD_NEXT, "fcntl");
    *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
    *(void **)&real_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
}

// ---- what is left behind --------------------------------------------------------------------------------------------

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += real_fcntl(fd, F_GETFD, 0) >= 0;
    return count;
}

// A device has megabytes; what the C library keeps for itself is less.
static long mapped_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages;
}

// Runs something as often as it makes calls, and one more time; each time another call is refused. It says whether all
// it wanted was done.
static void refuse_each(bool (*run)(void))
{
    enum { PAGES_SLACK = 2048, CALLS_MAX = 5000 };
    assert_true(run()); // what is made once is made now
    long blocks_before = atomic_load(&blocks), pages_before = mapped_pages();
    int descriptors_before = count_descriptors();
    for (unsigned number = 1; number < CALLS_MAX; number++) {
        refused = NULL;
        left = number;
        bool is_done = run();
        left = 0;
        if (atomic_load(&blocks) != blocks_before || count_descriptors() != descriptors_before)
            fail_msg("call %u, %s: %ld blocks of memory and %d descriptors more", number, refused ? refused : "none",
                     atomic_load(&blocks) - blocks_before, count_descriptors() - descriptors_before);
        if (!refused) {
            assert_true(is_done);
            print_message("%u calls\n", number - 1);
            break;
        }
    }
    assert_null(refused);
    assert_true(mapped_pages() < pages_before + PAGES_SLACK);
}

// ---- what programs do -----------------------------------------------------------------------------------------------

static bool has_failed; // something was refused, as it may; it has to say why

// Of a call that yields an object.
static void *object(void *made, const char *what)
{
    if (!made && errno == 0)
        fail_msg("%s failed without an errno (%s was refused)", what, refused ? refused : "nothing");
    has_failed |= !made;
    return made;
}
#define OBJECT(call)                                        (errno = 0, object((call), #call))

static int count_gids(struct ibv_context *opened)
{
    struct ibv_port_attr port;
    int count = 0;
    assert_int_equal(ibv_query_port(opened, 1, &port), 0);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        union ibv_gid gid = {.global = {0}};
        count += ibv_query_gid(opened, 1, i, &gid) == 0 && gid.global.interface_id != 0;
    }
    return count;
}

// A device opens with all of the loopback addresses that the host has, or does not, and never for want of an address.
static void check_gids(struct ibv_context *opened)
{
    int expected = fixture_has_ipv6 ? 2 : 1;
    if (opened && count_gids(opened) != expected)
        fail_msg("opened with %d of %d addresses (%s was refused)", count_gids(opened), expected, refused);
    if (!opened && errno == EADDRNOTAVAIL && refused && strcmp(refused, "bind") != 0)
        fail_msg("no such address (%s was refused)", refused);
}

static bool opens_and_closes(void)
{
    has_failed = false;
    struct ibv_device **list = OBJECT(ibv_get_device_list(NULL));
    struct ibv_context *context = list ? OBJECT(ibv_open_device(list[0])) : NULL;
    if (list)
        check_gids(context);
    if (context)
        assert_int_equal(ibv_close_device(context), 0);
    if (list)
        ibv_free_device_list(list);
    return !has_failed;
}

// Opened beside the one that is tried, so that its device stays.
static struct ibv_context *context;
static char memory[4096];

static void end_if(void *made, int result)
{
    if (made)
        assert_int_equal(result, 0);
}
#define END(function, made)                                 end_if((made), (made) ? function(made) : 0)

static bool makes_simple_objects(void)
{
    has_failed = false;
    struct ibv_pd *pd = OBJECT(ibv_alloc_pd(context));
    if (!pd)
        return false;
    struct ibv_td_init_attr td_init = {0};
    struct ibv_td *td = OBJECT(ibv_alloc_td(context, &td_init));
    struct ibv_parent_domain_init_attr parent_init = {.pd = pd, .td = td};
    struct ibv_pd *parent = OBJECT(ibv_alloc_parent_domain(context, &parent_init));
    struct ibv_mr *mr = OBJECT(ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
    struct ibv_mw *mw = OBJECT(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
    struct ibv_ah_attr ah_init = {.is_global = 1, .port_num = 1};
    assert_int_equal(ibv_query_gid(context, 1, 0, &ah_init.grh.dgid), 0);
    struct ibv_ah *ah = OBJECT(ibv_create_ah(pd, &ah_init));
    END(ibv_destroy_ah, ah);
    END(ibv_dealloc_mw, mw);
    END(ibv_dereg_mr, mr);
    END(ibv_dealloc_pd, parent);
    END(ibv_dealloc_td, td);
    END(ibv_dealloc_pd, pd);
    return !has_failed;
}

static void make_queue_pair(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq, enum ibv_qp_type type,
                            bool is_extended)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = type == IBV_QPT_RC ? srq : NULL,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 32},
        .qp_type = type,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (is_extended ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_qp *qp = OBJECT(ibv_create_qp_ex(context, &init));
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
    union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 224, 0, 0, 77}};
    if (!qp)
        return;
    int mask =
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
    int error = type == IBV_QPT_UD ? ibv_attach_mcast(qp, &group, 0) : 0;
    has_failed |= error != 0;
    if (type == IBV_QPT_UD && !error)
        assert_int_equal(ibv_detach_mcast(qp, &group, 0), 0);
    END(ibv_destroy_qp, qp);
}

static bool makes_queues(void)
{
    has_failed = false;
    struct ibv_pd *pd = OBJECT(ibv_alloc_pd(context));
    struct ibv_comp_channel *channel = OBJECT(ibv_create_comp_channel(context));
    struct ibv_cq *cq = OBJECT(ibv_create_cq(context, 64, NULL, channel, 0));
    struct ibv_cq_init_attr_ex cq_init = {.cqe = 64};
    struct ibv_cq_ex *cq_ex = OBJECT(ibv_create_cq_ex(context, &cq_init));
    struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = pd ? OBJECT(ibv_create_srq(pd, &srq_init)) : NULL;
    if (pd && cq) {
        make_queue_pair(pd, cq, srq, IBV_QPT_RC, true);
        make_queue_pair(pd, cq, NULL, IBV_QPT_UC, false);
        make_queue_pair(pd, cq, NULL, IBV_QPT_UD, false);
    }
    if (cq) {
        int error = ibv_resize_cq(cq, 200);
        has_failed |= error != 0;
    }
    END(ibv_destroy_srq, srq);
    if (cq_ex)
        assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
    END(ibv_destroy_cq, cq);
    END(ibv_destroy_comp_channel, channel);
    END(ibv_dealloc_pd, pd);
    return !has_failed;
}

static bool makes_xrc(void)
{
    has_failed = false;
    struct ibv_xrcd_init_attr xrcd_init = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_pd *pd = OBJECT(ibv_alloc_pd(context));
    struct ibv_cq *cq = OBJECT(ibv_create_cq(context, 64, NULL, NULL, 0));
    struct ibv_xrcd *xrcd = OBJECT(ibv_open_xrcd(context, &xrcd_init));
    if (pd && cq && xrcd) {
        struct ibv_srq_init_attr_ex srq_init = {
            .attr = {.max_wr = 16, .max_sge = 1},
            .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
            .srq_type = IBV_SRQT_XRC,
            .pd = pd,
            .xrcd = xrcd,
            .cq = cq,
        };
        struct ibv_srq *srq = OBJECT(ibv_create_srq_ex(context, &srq_init));
        struct ibv_qp_init_attr_ex init = {
            .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
        struct ibv_qp *qp = OBJECT(ibv_create_qp_ex(context, &init));
        END(ibv_destroy_qp, qp);
        END(ibv_destroy_srq, srq);
    }
    END(ibv_close_xrcd, xrcd);
    END(ibv_destroy_cq, cq);
    END(ibv_dealloc_pd, pd);
    return !has_failed;
}

// The next event, which comes soon or is not to come: what would tell of it had no memory.
static bool takes(struct rdma_event_channel *channel, enum rdma_cm_event_type type, struct rdma_cm_id **id)
{
    enum { PATIENCE_MS = 300 };
    struct pollfd poller = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    int ready;
    do {
        ready = poll(&poller, 1, PATIENCE_MS);
    } while (ready == 0 && !refused);
    if (ready != 1 || rdma_get_cm_event(channel, &event))
        return false;
    bool is_it = event->event == type;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && (!is_it || !id))
        fail_msg("a request that nobody waits for");
    if (id)
        *id = is_it ? event->id : NULL;
    rdma_ack_cm_event(event);
    return is_it;
}

static bool queue_pair_for(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    return rdma_create_qp(id, NULL, &init) == 0;
}

static bool talks(struct rdma_event_channel *channel, struct rdma_cm_id *listener, struct rdma_cm_id *id)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    struct rdma_conn_param param = {.retry_count = 7};
    struct rdma_cm_id *server = NULL;
    if (rdma_bind_addr(listener, (struct sockaddr *)&here) || rdma_listen(listener, 4))
        return false;
    here = fixture_sockaddr(fixture_address, ntohs(rdma_get_src_port(listener)));
    if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&here, 1000) ||
        !takes(channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) || rdma_resolve_route(id, 1000) ||
        !takes(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) || !queue_pair_for(id) || rdma_connect(id, &param))
        return false;
    bool is_done = takes(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &server);
    is_done = is_done && queue_pair_for(server) && rdma_accept(server, &param) == 0 &&
              takes(channel, RDMA_CM_EVENT_ESTABLISHED, NULL) && takes(channel, RDMA_CM_EVENT_ESTABLISHED, NULL) &&
              rdma_disconnect(id) == 0 && takes(channel, RDMA_CM_EVENT_DISCONNECTED, NULL) &&
              takes(channel, RDMA_CM_EVENT_DISCONNECTED, NULL);
    if (server)
        rdma_destroy_ep(server);
    return is_done;
}

static bool connects(void)
{
    has_failed = false;
    struct rdma_event_channel *channel = OBJECT(rdma_create_event_channel());
    struct rdma_cm_id *listener = NULL, *id = NULL;
    bool is_done = channel && rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0 &&
                   rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 && talks(channel, listener, id);
    if (id)
        rdma_destroy_ep(id);
    if (listener)
        rdma_destroy_id(listener);
    if (channel)
        rdma_destroy_event_channel(channel);
    return is_done;
}

static bool looks_up_and_joins(void)
{
    struct rdma_addrinfo *info, hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_UDP};
    struct sockaddr_storage group = fixture_sockaddr("224.0.0.78", 0);
    struct rdma_cm_id *id = NULL;
    struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_UD};
    if (rdma_getaddrinfo(fixture_address, "0", &hints, &info))
        return false;
    bool is_done = rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) == 0 && rdma_bind_addr(id, info->ai_src_addr) == 0 &&
                   rdma_create_qp(id, NULL, &init) == 0 &&
                   rdma_join_multicast(id, (struct sockaddr *)&group, NULL) == 0 &&
                   rdma_leave_multicast(id, (struct sockaddr *)&group) == 0;
    rdma_freeaddrinfo(info);
    if (id)
        rdma_destroy_ep(id);
    return is_done;
}

int repoll_create(int flags); // of <rdma/rsocket.h> from rdma-core 65 on
int repoll_ctl(int instance, int operation, int fd, struct epoll_event *event);

static bool watches(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int instance = repoll_create(0);
    bool is_done = instance >= 0 && fd >= 0 && repoll_ctl(instance, EPOLL_CTL_ADD, fd, &event) == 0;
    if (instance >= 0)
        assert_int_equal(rclose(instance), 0);
    return is_done;
}

static bool makes_rsockets(void)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    int stream = rsocket(AF_INET, SOCK_STREAM, 0), datagram = rsocket(AF_INET, SOCK_DGRAM, 0);
    bool is_done = stream >= 0 && rbind(stream, (struct sockaddr *)&here, sizeof(struct sockaddr_in)) == 0 &&
                   rlisten(stream, 4) == 0;
    is_done &= datagram >= 0 && rbind(datagram, (struct sockaddr *)&here, sizeof(struct sockaddr_in)) == 0;
    is_done &= watches(stream);
    if (stream >= 0)
        assert_int_equal(rclose(stream), 0);
    if (datagram >= 0)
        assert_int_equal(rclose(datagram), 0);
    return is_done;
}

// ---- tests ----------------------------------------------------------------------------------------------------------

static int keep_open(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list ? ibv_open_device(list[0]) : NULL;
    ibv_free_device_list(list);
    return context ? 0 : -1;
}

static int close_kept(void **state)
{
    return ibv_close_device(context);
}

// On the addresses that nobody asked for.
static void open_device__each_call_refused(void **state)
{
    char net[64];
    snprintf(net, sizeof(net), "%s", getenv("ALBEDO_NET"));
    unsetenv("ALBEDO_NET");
    refuse_each(opens_and_closes);
    setenv("ALBEDO_NET", net, 1);
}

static void objects__each_call_refused(void **state)
{
    refuse_each(makes_simple_objects);
    refuse_each(makes_queues);
    refuse_each(makes_xrc);
}

static void rdma_cm__each_call_refused(void **state)
{
    refuse_each(connects);
    refuse_each(looks_up_and_joins);
}

// A listener that was refused something is none, and may try again.
static void listen__again_after_each_call_refused(void **state)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    long blocks_before = 0;
    int one = 1;
    refused = "";
    for (unsigned number = 1; refused; number++) {
        struct rdma_cm_id *id;
        assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
        assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)), 0);
        assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&here), 0);
        refused = NULL;
        left = number;
        bool is_listening = rdma_listen(id, 1) == 0;
        left = 0;
        if (!is_listening)
            assert_int_equal(rdma_listen(id, 1), 0);
        assert_int_equal(rdma_destroy_id(id), 0);
        if (number == 1)
            blocks_before = atomic_load(&blocks);
        assert_int_equal(atomic_load(&blocks), blocks_before);
    }
}

// An event of this type, or none for a while.
static bool hears(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct pollfd poller = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    if (poll(&poller, 1, 5000) != 1 || rdma_get_cm_event(channel, &event))
        return false;
    bool is_it = event->event == type;
    rdma_ack_cm_event(event);
    return is_it;
}

// What becomes of a connection is reported without allocating: memory is reserved for these events.
static void rdma_cm__events_without_memory(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_conn_param param = {.retry_count = 7};
    struct rdma_cm_id *server = NULL;
    uint16_t port;
    struct rdma_cm_id *listener = fixture_listener(channel, RDMA_PS_TCP, &port);
    struct rdma_cm_id *id = fixture_resolved(channel, RDMA_PS_TCP, port);
    assert_true(queue_pair_for(id));
    assert_int_equal(rdma_connect(id, &param), 0);
    assert_true(takes(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &server));
    assert_true(queue_pair_for(server));
    assert_int_equal(rdma_accept(server, &param), 0);
    is_spent = true;
    bool is_heard = hears(channel, RDMA_CM_EVENT_ESTABLISHED) && hears(channel, RDMA_CM_EVENT_ESTABLISHED) &&
                    rdma_disconnect(id) == 0 && hears(channel, RDMA_CM_EVENT_DISCONNECTED) &&
                    hears(channel, RDMA_CM_EVENT_DISCONNECTED);
    is_spent = false;
    assert_true(is_heard);
    rdma_destroy_ep(server);
    rdma_destroy_ep(id);
    assert_int_equal(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(channel);
}

static void rsocket__each_call_refused(void **state)
{
    refuse_each(makes_rsockets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_device__each_call_refused), // first: nothing keeps the device open
        cmocka_unit_test_setup_teardown(objects__each_call_refused, keep_open, close_kept),
        cmocka_unit_test(rdma_cm__each_call_refused),
        cmocka_unit_test(listen__again_after_each_call_refused),
        cmocka_unit_test(rdma_cm__events_without_memory),
        cmocka_unit_test(rsocket__each_call_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
#endif
