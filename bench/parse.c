// SPDX-License-Identifier: BSD-2-Clause
#include "bench/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool alb_bench_parse_number(const char *text, uint32_t least, uint32_t most, uint32_t *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || number < least || number > most)
        return false;
    *value = (uint32_t)number;
    return true;
}

socklen_t alb_bench_parse_address(const char *text, uint16_t port, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    memset(address, 0, sizeof(*address));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof(*v4);
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return sizeof(*v6);
    }
    return 0;
}

_Noreturn void alb_bench_refuse(const struct alb_bench_command *command, const char *option, const char *value)
{
    fprintf(stderr, "%s: %s: \"%s\" is not possible\n%s", command->name, option, value, command->usage);
    exit(2);
}

uint32_t alb_bench_take_number(const struct alb_bench_command *command, const char *option, const char *text,
                               uint32_t least, uint32_t most)
{
    uint32_t value;
    if (!alb_bench_parse_number(text, least, most, &value))
        alb_bench_refuse(command, option, text);
    return value;
}
