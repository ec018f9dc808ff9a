// SPDX-License-Identifier: BSD-2-Clause
// Which two addresses of one number cannot both be listened on: for listeners of a process, and of a host.
#pragma once

#include <errno.h>
#include <stdbool.h>

static const struct listen_conflict {
    const char *first, *second;
    bool first_is_one_family; // "::" does not stand for IPv4 as well
    int result;               // of the second
} listen_conflicts[] = {
    {"10.0.0.1", "10.0.0.1", false, EADDRINUSE},
    {"10.0.0.1", "10.0.0.2", false, 0},
    {"0.0.0.0", "10.0.0.1", false, EADDRINUSE},
    {"10.0.0.1", "0.0.0.0", false, EADDRINUSE},
    {"10.0.0.1", "::", false, EADDRINUSE},
    {"::", "10.0.0.1", false, EADDRINUSE},
    {"::", "10.0.0.1", true, 0},
    {"::", "0.0.0.0", false, EADDRINUSE},
    {"::", "0.0.0.0", true, 0},
    {"::", "fd00::1", true, EADDRINUSE},
    {"0.0.0.0", "fd00::1", false, 0},
    {"fd00::1", "::", false, EADDRINUSE},
};
