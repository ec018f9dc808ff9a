// SPDX-License-Identifier: BSD-2-Clause
// What the programs of this folder read from their command lines.
#pragma once

#include "base/types.h"

#include <sys/socket.h>

// Whether text is a decimal number within the bounds.
bool alb_bench_parse_number(const char *text, uint32_t least, uint32_t most, uint32_t *value);
// A numeric IPv4 or IPv6 address with a port. Returns the length of the socket address, 0 if it is none.
socklen_t alb_bench_parse_address(const char *text, uint16_t port, struct sockaddr_storage *address);

struct alb_bench_command {
    const char *name, *usage;
};

// An option's value is wrong: says so and ends the program with status 2.
_Noreturn void alb_bench_refuse(const struct alb_bench_command *command, const char *option, const char *value);
// A number within the bounds, or alb_bench_refuse.
uint32_t alb_bench_take_number(const struct alb_bench_command *command, const char *option, const char *text,
                               uint32_t least, uint32_t most);
