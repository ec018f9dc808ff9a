// SPDX-License-Identifier: BSD-2-Clause
// Whether memory is there. A device with hardware pins the pages it registers and so finds out; this one looks at the
// process's map, because the engine would otherwise take the fault later, in a thread of its own.
#include "plugins/verbs/door.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

// Reads /proc/self/maps (proc(5)) line by line without the C library's streams, which allocate.
struct reader {
    int fd;
    size_t first, end;
    char bytes[4096];
};

struct mapping {
    uintptr_t start, end;
    bool is_readable, is_writable;
};

// The next line, without its newline and cut after what a mapping's first two fields need; false at the end.
static bool next_line(struct reader *reader, char line[64])
{
    size_t length = 0;
    for (;;) {
        if (reader->first == reader->end) {
            ssize_t got = read(reader->fd, reader->bytes, sizeof(reader->bytes));
            if (got <= 0)
                return false;
            reader->first = 0;
            reader->end = (size_t)got;
        }
        char c = reader->bytes[reader->first++];
        if (c == '\n')
            break;
        if (length < 63)
            line[length++] = c;
    }
    line[length] = '\0';
    return true;
}

// "start-end rwxp ..." with hexadecimal addresses.
static bool next_mapping(struct reader *reader, struct mapping *mapping)
{
    char line[64];
    char *rest;
    if (!next_line(reader, line))
        return false;
    mapping->start = strtoull(line, &rest, 16);
    if (*rest++ != '-')
        return false;
    mapping->end = strtoull(rest, &rest, 16);
    if (*rest++ != ' ')
        return false;
    mapping->is_readable = rest[0] == 'r';
    mapping->is_writable = rest[0] != '\0' && rest[1] == 'w';
    return true;
}

// Mappings come in order of address and do not overlap: every one that touches the range must begin where the last
// ended.
int alb_door_check_mapped(const void *address, size_t length, bool writable)
{
    uintptr_t at = (uintptr_t)address;
    uintptr_t end = at + length;
    struct reader reader = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (reader.fd < 0)
        return 0; // no /proc: as the program says
    struct mapping mapping;
    while (at < end && next_mapping(&reader, &mapping)) {
        if (mapping.end <= at)
            continue;
        if (mapping.start > at || !mapping.is_readable || (writable && !mapping.is_writable))
            break;
        at = mapping.end;
    }
    close(reader.fd);
    return at < end ? EFAULT : 0;
}
