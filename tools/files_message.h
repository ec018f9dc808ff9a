// SPDX-License-Identifier: BSD-2-Clause
// What `albedo cp` and `albedo serve` say to each other beside the data. One form for all, little-endian.
#pragma once

#include "base/digest.h"

#define FILES_PORT          "18590"
#define FILES_MESSAGE_BYTES 1152
#define FILES_TEXT_MAX      1024

enum files_kind {
    FILES_PING = 1, // keep-alive: the transport's acknowledgement is the answer
    FILES_PUT,      // client: will send so many bytes, to be called text
    FILES_GET,      // client: wants what is called text
    FILES_HAVE,     // server, to GET: it has so many bytes
    FILES_PLACE,    // receiver: this is where they go
    FILES_DONE,     // sender: all of it is there, with this digest
    FILES_VERIFIED, // receiver: it is, and has its name now
    FILES_REFUSED,  // either: no, and text says why; the conversation ends. size 1: it may be worth another try
    FILES_KINDS,
};

// Where a receiver wants the data: chunk i at address + i * chunk_bytes, its digest (low, high) at table + 16 * i. A
// digest of zeros stands for a chunk that is not there.
struct files_place {
    uint64_t address, table;
    uint32_t rkey, table_rkey;
};

struct files_message {
    enum files_kind kind;
    uint32_t mode; // of the file
    uint64_t size; // bytes
    uint32_t chunk_bytes;
    struct files_place place;
    struct alb_digest digest;
    char text[FILES_TEXT_MAX];
};

void files_message_encode(const struct files_message *message, uint8_t bytes[FILES_MESSAGE_BYTES]);
// False: it is none. length: as it came.
bool files_message_decode(const uint8_t *bytes, uint32_t length, struct files_message *message);

#define FILES_CHUNK_MIN (4u << 10)
#define FILES_CHUNK_MAX (16u << 20) // takes half of a target's staging memory

static inline uint64_t files_chunks(uint64_t size, uint32_t chunk_bytes)
{
    return (size + chunk_bytes - 1) / chunk_bytes;
}

// As xxh128sum prints it.
#define FILES_DIGEST_TEXT 33
const char *files_digest_format(const struct alb_digest *digest, char text[FILES_DIGEST_TEXT]);
