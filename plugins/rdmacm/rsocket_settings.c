// SPDX-License-Identifier: BSD-2-Clause
// Sizes and times that an rsocket starts with, and the option level SOL_RDMA by which programs change them. The
// defaults can be set for a host by the files that rsocket(7) names, as with rdma-core.
#include "plugins/rdmacm/rsocket.h"
#include "plugins/rdmacm/rsocket_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_DIRECTORY "/etc/rdma/rsocket/"

enum {
    QUEUE_DEFAULT = 384,
    QUEUE_MAX = 0xfffe,
    BYTES_DEFAULT = 1 << 20,
    INLINE_DEFAULT = 64,
    POLLING_DEFAULT_US = 10,
};

static struct rsocket_settings defaults = {
    .receive_bytes = BYTES_DEFAULT,
    .send_bytes = BYTES_DEFAULT,
    .receive_queue = QUEUE_DEFAULT,
    .send_queue = QUEUE_DEFAULT,
    .inline_bytes = INLINE_DEFAULT,
    .polling_us = POLLING_DEFAULT_US,
};

static bool read_number(const char *name, uint32_t *out)
{
    char path[sizeof(SETTINGS_DIRECTORY) + 32];
    unsigned number;
    snprintf(path, sizeof(path), SETTINGS_DIRECTORY "%s", name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_number = fscanf(file, "%u", &number) == 1;
    fclose(file);
    if (is_number)
        *out = number;
    return is_number;
}

static void read_defaults(void)
{
    uint32_t polling_us;
    read_number("mem_default", &defaults.receive_bytes);
    read_number("wmem_default", &defaults.send_bytes);
    read_number("sqsize_default", &defaults.send_queue);
    read_number("rqsize_default", &defaults.receive_queue);
    read_number("inline_default", &defaults.inline_bytes);
    if (read_number("iomap_size", &defaults.iomap_count))
        defaults.iomap_count = rsocket_iomap_count_carried(defaults.iomap_count);
    if (read_number("polling_time", &polling_us))
        defaults.polling_us = (int)ALB_MIN(polling_us, 1000000u);
}

struct rsocket_settings rsocket_settings_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_defaults);
    return defaults;
}

int rsocket_option_int(const void *value, socklen_t length, int *out)
{
    if (length < sizeof(*out))
        return EINVAL;
    memcpy(out, value, sizeof(*out));
    return 0;
}

int rsocket_option_give(const void *from, size_t bytes, void *value, socklen_t *length)
{
    *length = (socklen_t)ALB_MIN((size_t)*length, bytes);
    memcpy(value, from, *length);
    return 0;
}

int rsocket_set_setting(struct rsocket_settings *settings, int name, const void *value, socklen_t length)
{
    int number, error = rsocket_option_int(value, length, &number);
    if (error)
        return error;
    if (number < 0)
        return EINVAL;
    switch (name) {
    case RDMA_SQSIZE:
        settings->send_queue = (uint32_t)ALB_MIN(number, QUEUE_MAX);
        return 0;
    case RDMA_RQSIZE:
        settings->receive_queue = (uint32_t)ALB_MIN(number, QUEUE_MAX);
        return 0;
    case RDMA_INLINE:
        settings->inline_bytes = (uint32_t)ALB_MIN(number, ALB_MAX_INLINE);
        return 0;
    case RDMA_IOMAPSIZE:
        settings->iomap_count = rsocket_iomap_count_carried((uint32_t)number);
        return 0;
    default:
        return ENOPROTOOPT;
    }
}

int rsocket_get_setting(const struct rsocket_settings *settings, int name, void *value, socklen_t *length)
{
    const uint32_t *number = name == RDMA_SQSIZE      ? &settings->send_queue
                             : name == RDMA_RQSIZE    ? &settings->receive_queue
                             : name == RDMA_INLINE    ? &settings->inline_bytes
                             : name == RDMA_IOMAPSIZE ? &settings->iomap_count
                                                      : NULL;
    return number ? rsocket_option_give(number, sizeof(*number), value, length) : ENOPROTOOPT;
}
