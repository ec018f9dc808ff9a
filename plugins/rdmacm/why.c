// SPDX-License-Identifier: BSD-2-Clause
// Why a connection does not come about, for people: an event's number alone does not help who forgot an option. Each
// cause is said once, since programs try again.
#include "plugins/rdmacm/door.h"

#include "base/log.h"

#include <stdatomic.h>
#include <string.h>

// A program that says such things itself has it, as `albedo cp` does.
extern const bool albedo_says_why __attribute__((weak));

enum cause {
    NO_ADDRESS,
    NO_ANSWER,
    NOBODY_LISTENS,
    CAUSES,
};

static bool is_new(enum cause cause)
{
    static atomic_flag said[CAUSES] = {ATOMIC_FLAG_INIT, ATOMIC_FLAG_INIT, ATOMIC_FLAG_INIT};
    return !&albedo_says_why && alb_log_is_shown(ALB_LOG_WARNING) && !atomic_flag_test_and_set(&said[cause]);
}

void rdmacm_why_no_address(const struct alb_addr *peer, uint16_t port, int error)
{
    char text[ALB_ADDR_TEXT_MAX];
    bool is_of_address = error == ENODEV || error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == ENETUNREACH;
    if (is_of_address && is_new(NO_ADDRESS))
        alb_log(ALB_LOG_WARNING,
                "rdma_cm: %s port %u: the device has no address to reach it from (%s); `albedo run --net` sets them, "
                "here and for the server, and without it they are loopback's",
                alb_addr_format(peer, text), port, strerror(error));
}

void rdmacm_why_no_answer(const struct rdmacm_id *id)
{
    char text[ALB_ADDR_TEXT_MAX];
    if (is_new(NO_ANSWER))
        alb_log(ALB_LOG_WARNING,
                "rdma_cm: %s port %u: no answer: is the host up, and has the server that address, with "
                "`albedo run --net`?",
                alb_addr_format(&id->av.peer, text), rdmacm_port(&id->id.route.addr.dst_storage));
}

void rdmacm_why_nobody_listens(const struct rdmacm_id *id)
{
    char text[ALB_ADDR_TEXT_MAX];
    if (is_new(NOBODY_LISTENS))
        alb_log(
            ALB_LOG_WARNING,
            "rdma_cm: %s port %u: nothing listens there by %s: is the server running, and on the same device? "
            "`albedo run --device` chooses it. (Of several users of that host, or containers with a /dev/shm each, "
            "only the one whose process has UDP port 4791 is reached; containers of one user can share /dev/shm, or "
            "one ALBEDO_DIRECTORY.)",
            alb_addr_format(&id->av.peer, text), rdmacm_port(&id->id.route.addr.dst_storage),
            ibv_get_device_name(id->id.verbs->device));
}
