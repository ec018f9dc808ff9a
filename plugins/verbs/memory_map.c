// SPDX-License-Identifier: BSD-2-Clause
// Whether memory is there. A device with hardware pins the pages it registers and so finds out; this one looks at the
// process's map, because the engine would otherwise take the fault later, in a thread of its own.
#include "device/cancel.h"
#include "plugins/verbs/door.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

// ---- files
// ---------------------------------------------------------------------------------------------------------------------

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 // of Linux 5.14
#endif

// Behind its file's end a mapping has no memory (SIGBUS). A file is short at its end, so that only the last page before
// at is looked at: more would read the file. EFAULT, or 0: it is there, or such a mapping cannot be asked about.
static int check_file(uintptr_t at)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (at - 1) & ~(page_bytes - 1);
    bool is_there = madvise((void *)page, page_bytes, MADV_POPULATE_READ) == 0;
    return !is_there && (errno == EFAULT || errno == EHWPOISON) ? EFAULT : 0;
}

// ---- asked of the kernel: Linux 6.11 or later
// ---------------------------------------------------------------------------------------------------------------------

// PROCMAP_QUERY of <linux/fs.h>, which an older one has not. It finds a mapping as a page fault does; the text below
// takes a microsecond a mapping, and some processes have tens of thousands.
struct map_query {
    __u64 size;
    __u64 flags;
    __u64 address;
    __u64 start, end; // of the mapping found
    __u64 found_flags, page_bytes, offset, inode;
    __u32 device_major, device_minor;
    __u32 name_bytes, build_id_bytes;
    __u64 name, build_id;
};

#define MAP_QUERY          _IOWR('f', 17, struct map_query)
#define MAP_QUERY_READABLE 1
#define MAP_QUERY_WRITABLE 2

// 0, EFAULT, or another errno: it could not be asked.
static int query_mapped(int fd, uintptr_t at, uintptr_t end, bool writable)
{
    while (at < end) {
        struct map_query query = {
            .size = sizeof(query),
            .flags = MAP_QUERY_READABLE | (writable ? MAP_QUERY_WRITABLE : 0),
            .address = at,
        };
        if (ioctl(fd, MAP_QUERY, &query) != 0)
            return errno == ENOENT ? EFAULT : errno;
        at = ALB_MIN((uintptr_t)query.end, end);
        int error = query.inode ? check_file(at) : 0;
        if (error)
            return error;
    }
    return 0;
}

// ---- read as text
// ---------------------------------------------------------------------------------------------------------------------

// Reads /proc/self/maps (proc(5)) line by line without the C library's streams, which allocate.
struct reader {
    int fd;
    size_t first, end;
    char bytes[4096];
};

struct mapping {
    uintptr_t start, end;
    bool is_readable, is_writable, is_file;
};

enum { LINE_BYTES = 128 }; // more than what comes before a mapping's name

// The next line, without its newline and cut; false at the end.
static bool next_line(struct reader *reader, char line[LINE_BYTES])
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
        if (length < LINE_BYTES - 1)
            line[length++] = c;
    }
    line[length] = '\0';
    return true;
}

// What comes after the permissions: " offset device inode name". Without a file the inode is 0.
static bool is_of_file(const char *rest)
{
    for (int field = 0; field < 2; field++) {
        rest += strspn(rest, " ");
        rest += strcspn(rest, " ");
    }
    return strtoull(rest, NULL, 10) != 0;
}

// "start-end rwxp ..." with hexadecimal addresses.
static bool next_mapping(struct reader *reader, struct mapping *mapping)
{
    char line[LINE_BYTES];
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
    mapping->is_file = is_of_file(rest + strcspn(rest, " "));
    return true;
}

// Mappings come in order of address and do not overlap: every one that touches the range must begin where the last
// ended.
static int read_mapped(int fd, uintptr_t at, uintptr_t end, bool writable)
{
    struct reader reader = {.fd = fd};
    struct mapping mapping;
    while (at < end && next_mapping(&reader, &mapping)) {
        if (mapping.end <= at)
            continue;
        if (mapping.start > at || !mapping.is_readable || (writable && !mapping.is_writable))
            break;
        at = ALB_MIN(mapping.end, end);
        int error = mapping.is_file ? check_file(at) : 0;
        if (error)
            return error;
    }
    return at < end ? EFAULT : 0;
}

// ---------------------------------------------------------------------------------------------------------------------

static int check(uintptr_t at, uintptr_t end, bool writable)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) // where there is no /proc, as the program says
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : 0;
    int error = query_mapped(fd, at, end, writable);
    if (error && error != EFAULT)
        error = read_mapped(fd, at, end, writable);
    close(fd);
    return error;
}

int alb_door_check_mapped(const void *address, size_t length, bool writable)
{
    uintptr_t at = (uintptr_t)address;
    int cancel = alb_cancel_off(), error = check(at, at + length, writable);
    alb_cancel_back(cancel);
    return error;
}
