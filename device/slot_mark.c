// SPDX-License-Identifier: BSD-2-Clause
#include "device/slot_mark.h"

#include "device/cancel.h"
#include "device/descriptor.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t write_name(struct sockaddr_un *name, const struct alb_addr *addr, uint8_t slot)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t at = 1; // behind a zero, which makes it abstract
    at += (size_t)snprintf(name->sun_path + at, sizeof(name->sun_path) - at, "albedo-%u-", alb_slot_port(slot));
    for (unsigned i = 0; i < sizeof(addr->bytes); i++)
        at += (size_t)snprintf(name->sun_path + at, sizeof(name->sun_path) - at, "%02x", addr->bytes[i]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + at);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int alb_slot_mark_open(const struct alb_addr *addr, uint8_t slot)
{
    struct sockaddr_un name;
    socklen_t length = write_name(&name, addr, slot);
    int fd = alb_descriptor_aside(open_socket());
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&name, length) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    shutdown(fd, SHUT_RD); // nobody has anything to say to it
    return fd;
}

static bool is_there(const struct alb_addr *addr, uint8_t slot)
{
    struct sockaddr_un name;
    socklen_t length = write_name(&name, addr, slot);
    int fd = open_socket();
    if (fd < 0)
        return true;
    bool is_refused = connect(fd, (struct sockaddr *)&name, length) != 0 && errno == ECONNREFUSED;
    close(fd);
    return !is_refused;
}

// Called by the driver, perhaps a program's thread that holds the token.
bool alb_slot_marks_has(struct alb_slot_marks *marks, const struct alb_addr *addr, uint8_t slot, alb_time now)
{
    struct alb_slot_mark_seen *seen = &marks->seen[slot];
    if (now < seen->until && alb_addr_equals(&seen->addr, addr))
        return seen->is_there;
    int cancel = alb_cancel_off();
    *seen = (struct alb_slot_mark_seen){
        .until = now + ALB_SLOT_MARK_SEEN_NS, .addr = *addr, .is_there = is_there(addr, slot)};
    alb_cancel_back(cancel);
    return seen->is_there;
}
