// SPDX-License-Identifier: BSD-2-Clause
// Claiming a process slot by binding its port.
#include "device/slot.h"

#include <errno.h>

static int bind_all(const struct alb_addr *addresses, uint32_t count, uint16_t port,
                    int (*open)(struct alb_socket *sock, const struct alb_endpoint *local), struct alb_socket *sockets)
{
    int error = 0;
    for (uint32_t i = 0; i < count; i++)
        sockets[i].fd = -1;
    for (uint32_t i = 0; i < count && !error; i++) {
        const struct alb_endpoint local = {.addr = addresses[i], .port = port};
        error = open(&sockets[i], &local);
    }
    for (uint32_t i = 0; i < count && error; i++)
        alb_socket_close(&sockets[i]);
    return error;
}

int alb_slot_bind(const struct alb_addr *addresses, uint32_t count, uint16_t port, struct alb_socket *sockets)
{
    return bind_all(addresses, count, port, alb_socket_open, sockets);
}

int alb_slot_bind_front(const struct alb_addr *addresses, uint32_t count, struct alb_socket *sockets)
{
    return bind_all(addresses, count, ALB_ROCE_PORT, alb_socket_open_absent, sockets);
}

int alb_slot_claim(const struct alb_addr *addresses, uint32_t count, struct alb_socket *sockets, uint8_t *slot)
{
    for (uint32_t s = 0; s < ALB_SLOTS; s++) {
        int error = alb_slot_bind(addresses, count, alb_slot_port((uint8_t)s), sockets);
        if (error == 0)
            *slot = (uint8_t)s;
        if (error != EADDRINUSE)
            return error;
    }
    return EADDRINUSE;
}
