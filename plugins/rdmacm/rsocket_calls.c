// SPDX-License-Identifier: BSD-2-Clause
// The calls that every type of rsocket has, as <rdma/rsocket.h> declares them: they find the rsocket, lock it, and
// leave the rest to its type.
#include "plugins/rdmacm/rsocket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>

static int finish(struct rsocket *rs, int error)
{
    rsocket_give(rs);
    return rdmacm_result(error);
}

static int create(int domain, int type, struct rsocket **rs)
{
    if (!rdmacm_context())
        return errno;
    return type == SOCK_STREAM ? rsocket_stream_create(domain, rs) : rsocket_datagram_create(domain, rs);
}

// A type with flags (SOCK_CLOEXEC and the like) is refused: what stands between a program and its sockets, as
// librspreload does, then takes an ordinary one, and so do we ourselves.
int rsocket(int domain, int type, int protocol)
{
    struct rsocket *rs = NULL;
    if (domain != AF_INET && domain != AF_INET6)
        return rdmacm_fail(EAFNOSUPPORT);
    if (type != SOCK_STREAM && type != SOCK_DGRAM)
        return rdmacm_fail(ESOCKTNOSUPPORT);
    if (protocol && protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
        return rdmacm_fail(EPROTONOSUPPORT);
    rsocket_cancel_off();
    int error = create(domain, type, &rs);
    rsocket_cancel_back();
    return error ? rdmacm_fail(error) : rs->fd;
}

int rbind(int socket, const struct sockaddr *address, socklen_t length)
{
    struct rsocket *rs = rsocket_take(socket);
    return rs ? finish(rs, rs->ops->bind(rs, address, length)) : -1;
}

int rconnect(int socket, const struct sockaddr *address, socklen_t length)
{
    struct rsocket *rs = rsocket_take(socket);
    return rs ? finish(rs, rs->ops->connect(rs, address, length)) : -1;
}

int rshutdown(int socket, int how)
{
    struct rsocket *rs = rsocket_take(socket);
    return rs ? finish(rs, rs->ops->shutdown(rs, how)) : -1;
}

// ---- receiving

int rsocket_take_address(const struct rsocket *rs, const struct sockaddr *address, socklen_t length,
                         struct sockaddr_storage *copy)
{
    if (!address || length < sizeof(struct sockaddr_in) || length > sizeof(*copy))
        return EINVAL;
    memset(copy, 0, sizeof(*copy));
    memcpy(copy, address, length);
    if (copy->ss_family != rs->domain)
        return EAFNOSUPPORT;
    return copy->ss_family == AF_INET6 && length < sizeof(struct sockaddr_in6) ? EINVAL : 0;
}

void rsocket_give_address(const struct sockaddr_storage *from, struct sockaddr *address, socklen_t *length)
{
    socklen_t whole = from->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (!length)
        return;
    if (address)
        memcpy(address, from, ALB_MIN(*length, whole));
    *length = from->ss_family == AF_UNSPEC ? 0 : whole;
}

// is_short may be NULL.
static ssize_t receive(int socket, const struct iovec *iov, size_t count, int flags, struct sockaddr *address,
                       socklen_t *length, bool *is_short)
{
    struct rsocket *rs = rsocket_take(socket);
    struct rsocket_cursor to;
    struct sockaddr_storage from = {0};
    if (!rs)
        return -1;
    int error = rsocket_cursor_init(&to, iov, count);
    ssize_t done = error ? -error : rs->ops->receive(rs, &to, flags, &from);
    rsocket_give(rs);
    if (done < 0)
        return rdmacm_fail((int)-done);
    rsocket_give_address(&from, address, length);
    if (is_short)
        *is_short = to.is_short;
    return done;
}

ssize_t rrecvfrom(int socket, void *buffer, size_t size, int flags, struct sockaddr *address, socklen_t *length)
{
    struct iovec iov = {buffer, size};
    return receive(socket, &iov, 1, flags, address, length, NULL);
}

ssize_t rrecv(int socket, void *buffer, size_t size, int flags)
{
    return rrecvfrom(socket, buffer, size, flags, NULL, NULL);
}

ssize_t rread(int socket, void *buffer, size_t size)
{
    return rrecvfrom(socket, buffer, size, 0, NULL, NULL);
}

ssize_t rreadv(int socket, const struct iovec *iov, int count)
{
    return count < 0 ? rdmacm_fail(EINVAL) : receive(socket, iov, (size_t)count, 0, NULL, NULL, NULL);
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    socklen_t length = msg->msg_name ? msg->msg_namelen : 0;
    bool is_short;
    ssize_t done = receive(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name, &length, &is_short);
    if (done < 0)
        return -1;
    msg->msg_namelen = length;
    msg->msg_controllen = 0;
    msg->msg_flags = is_short ? MSG_TRUNC : 0;
    return done;
}

// ---- sending

static ssize_t send_vector(int socket, const struct iovec *iov, size_t count, int flags, const struct sockaddr *to,
                           socklen_t length)
{
    struct rsocket *rs = rsocket_take(socket);
    struct rsocket_cursor from;
    if (!rs)
        return -1;
    int error = rsocket_cursor_init(&from, iov, count);
    ssize_t done = error ? -error : rs->ops->send(rs, &from, flags, to, length);
    rsocket_give(rs);
    return done < 0 ? rdmacm_fail((int)-done) : done;
}

ssize_t rsendto(int socket, const void *buffer, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
    struct iovec iov = {(void *)buffer, size};
    return send_vector(socket, &iov, 1, flags, to, length);
}

ssize_t rsend(int socket, const void *buffer, size_t size, int flags)
{
    return rsendto(socket, buffer, size, flags, NULL, 0);
}

ssize_t rwrite(int socket, const void *buffer, size_t size)
{
    return rsendto(socket, buffer, size, 0, NULL, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int count)
{
    return count < 0 ? rdmacm_fail(EINVAL) : send_vector(socket, iov, (size_t)count, 0, NULL, 0);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    if (msg->msg_controllen > 0)
        return rdmacm_fail(EOPNOTSUPP);
    return send_vector(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
                       msg->msg_name ? msg->msg_namelen : 0);
}

// ---- names

static int get_name(int socket, bool is_peer, struct sockaddr *address, socklen_t *length)
{
    struct sockaddr_storage name = {0};
    struct rsocket *rs = rsocket_take(socket);
    if (!rs)
        return -1;
    int error = rs->ops->address(rs, is_peer, &name);
    if (!error && !length)
        error = EFAULT;
    if (!error)
        rsocket_give_address(&name, address, length);
    return finish(rs, error);
}

int rgetpeername(int socket, struct sockaddr *address, socklen_t *length)
{
    return get_name(socket, true, address, length);
}

int rgetsockname(int socket, struct sockaddr *address, socklen_t *length)
{
    return get_name(socket, false, address, length);
}

// ---- options

int rsetsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
    struct rsocket *rs = rsocket_take(socket);
    return rs ? finish(rs, value ? rs->ops->set_option(rs, level, name, value, length) : EFAULT) : -1;
}

int rgetsockopt(int socket, int level, int name, void *value, socklen_t *length)
{
    struct rsocket *rs = rsocket_take(socket);
    return rs ? finish(rs, value && length ? rs->ops->get_option(rs, level, name, value, length) : EFAULT) : -1;
}

int rfcntl(int socket, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    int argument = command == F_SETFL || command == F_SETFD ? va_arg(arguments, int) : 0;
    va_end(arguments);
    struct rsocket *rs = rsocket_take(socket);
    int result = 0;
    if (!rs)
        return -1;
    switch (command) {
    case F_GETFL:
        result = rs->status_flags | O_RDWR;
        break;
    case F_SETFL:
        rs->status_flags = argument & O_NONBLOCK;
        break;
    case F_GETFD:
    case F_SETFD:
        result = fcntl(socket, command, argument); // the number is a descriptor
        break;
    default:
        result = rdmacm_fail(EINVAL);
    }
    rsocket_give(rs);
    return result;
}
