// SPDX-License-Identifier: BSD-2-Clause
// Duplicate address detection (RFC 4862): an IPv6 address that is new on an interface can be bound when the kernel has
// asked the link whether another one has it, which takes a second or two.
#pragma once

#include "base/addr.h"

enum alb_dad {
    ALB_DAD_OVER, // it can be bound, is no address of an interface, or nothing is known of it
    ALB_DAD_UNDER_WAY,
    ALB_DAD_FAILED, // another one has it
};

// What holds when it is over, or at that time of the device's clock.
enum alb_dad alb_dad_await(const struct alb_addr *addr, alb_time until);
