// SPDX-License-Identifier: BSD-2-Clause
// What the kernel tells of it: getifaddrs(3) leaves an address's flags out.
#include "device/dad.h"

#include "device/clock.h"

#include <inttypes.h>
#include <linux/if_addr.h>
#include <stdio.h>
#include <string.h>

#define LOOK_AGAIN_NS (20 * ALB_NS_PER_MS)

static enum alb_dad of_flags(unsigned flags)
{
    if (flags & IFA_F_DADFAILED)
        return ALB_DAD_FAILED;
    return flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC) ? ALB_DAD_UNDER_WAY : ALB_DAD_OVER;
}

static bool is_text_of(const char *text, const struct alb_addr *addr)
{
    for (size_t i = 0; i < sizeof(addr->bytes); i++) {
        char byte[3];
        snprintf(byte, sizeof(byte), "%02x", addr->bytes[i]);
        if (memcmp(text + 2 * i, byte, 2) != 0)
            return false;
    }
    return true;
}

// One that several interfaces have can be bound when one of them has it for good.
static enum alb_dad look(const struct alb_addr *addr)
{
    enum alb_dad dad = ALB_DAD_OVER;
    bool is_over = false;
    char line[128], text[33];
    unsigned flags;
    FILE *file = fopen("/proc/thread-self/net/if_inet6", "re");
    while (file && !is_over && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%32s %*x %*x %*x %x", text, &flags) != 2 || strlen(text) != 32 || !is_text_of(text, addr))
            continue;
        dad = of_flags(flags);
        is_over = dad == ALB_DAD_OVER;
    }
    if (file)
        fclose(file);
    return dad;
}

enum alb_dad alb_dad_await(const struct alb_addr *addr, alb_time until)
{
    enum alb_dad dad = ALB_DAD_OVER;
    if (alb_addr_is_ipv4(addr))
        return dad;
    while ((dad = look(addr)) == ALB_DAD_UNDER_WAY && alb_clock_now() < until) {
        const struct timespec pause = alb_timespec(LOOK_AGAIN_NS);
        nanosleep(&pause, NULL);
    }
    return dad;
}
