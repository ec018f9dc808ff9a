// SPDX-License-Identifier: BSD-2-Clause
// Numbers at any address: in network byte order, and little-endian, as in the layouts of our own files and messages.
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t alb_get_be16(const uint8_t *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof(value));
    return be16toh(value);
}

static inline uint32_t alb_get_be24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t alb_get_be32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof(value));
    return be32toh(value);
}

static inline uint64_t alb_get_be64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof(value));
    return be64toh(value);
}

static inline void alb_put_be16(uint8_t *p, uint16_t value)
{
    value = htobe16(value);
    memcpy(p, &value, sizeof(value));
}

// The high byte of value is not looked at.
static inline void alb_put_be24(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 16);
    p[1] = (uint8_t)(value >> 8);
    p[2] = (uint8_t)value;
}

static inline void alb_put_be32(uint8_t *p, uint32_t value)
{
    value = htobe32(value);
    memcpy(p, &value, sizeof(value));
}

static inline void alb_put_be64(uint8_t *p, uint64_t value)
{
    value = htobe64(value);
    memcpy(p, &value, sizeof(value));
}

static inline uint32_t alb_get_le32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof(value));
    return le32toh(value);
}

static inline uint64_t alb_get_le64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof(value));
    return le64toh(value);
}

static inline void alb_put_le32(uint8_t *p, uint32_t value)
{
    value = htole32(value);
    memcpy(p, &value, sizeof(value));
}

static inline void alb_put_le64(uint8_t *p, uint64_t value)
{
    value = htole64(value);
    memcpy(p, &value, sizeof(value));
}
