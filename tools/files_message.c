// SPDX-License-Identifier: BSD-2-Clause
// Messages of `albedo cp` and `albedo serve`.
#include "tools/files_message.h"

#include "wire/bytes.h"

#include <stdio.h>
#include <string.h>

#define MAGIC 0x31706362u // "bcp1"

// As it travels: magic 4, kind 4, mode 4, chunk 4, size 8, address 8, table 8, keys 4 4, digest 16, reserved 64, text.
enum { AT_SIZE = 16, AT_PLACE = 24, AT_KEYS = 40, AT_DIGEST = 48, AT_TEXT = FILES_MESSAGE_BYTES - FILES_TEXT_MAX };

void files_message_encode(const struct files_message *message, uint8_t bytes[FILES_MESSAGE_BYTES])
{
    memset(bytes, 0, FILES_MESSAGE_BYTES);
    alb_put_le32(bytes, MAGIC);
    alb_put_le32(bytes + 4, message->kind);
    alb_put_le32(bytes + 8, message->mode);
    alb_put_le32(bytes + 12, message->chunk_bytes);
    alb_put_le64(bytes + AT_SIZE, message->size);
    alb_put_le64(bytes + AT_PLACE, message->place.address);
    alb_put_le64(bytes + AT_PLACE + 8, message->place.table);
    alb_put_le32(bytes + AT_KEYS, message->place.rkey);
    alb_put_le32(bytes + AT_KEYS + 4, message->place.table_rkey);
    alb_put_le64(bytes + AT_DIGEST, message->digest.low);
    alb_put_le64(bytes + AT_DIGEST + 8, message->digest.high);
    snprintf((char *)bytes + AT_TEXT, FILES_TEXT_MAX, "%s", message->text);
}

bool files_message_decode(const uint8_t *bytes, uint32_t length, struct files_message *message)
{
    if (length != FILES_MESSAGE_BYTES || alb_get_le32(bytes) != MAGIC)
        return false;
    uint32_t kind = alb_get_le32(bytes + 4);
    *message = (struct files_message){
        .kind = (enum files_kind)kind,
        .mode = alb_get_le32(bytes + 8),
        .chunk_bytes = alb_get_le32(bytes + 12),
        .size = alb_get_le64(bytes + AT_SIZE),
        .place = {.address = alb_get_le64(bytes + AT_PLACE),
                  .table = alb_get_le64(bytes + AT_PLACE + 8),
                  .rkey = alb_get_le32(bytes + AT_KEYS),
                  .table_rkey = alb_get_le32(bytes + AT_KEYS + 4)},
        .digest = {.low = alb_get_le64(bytes + AT_DIGEST), .high = alb_get_le64(bytes + AT_DIGEST + 8)},
    };
    memcpy(message->text, bytes + AT_TEXT, FILES_TEXT_MAX);
    bool names_chunks = kind == FILES_PUT || kind == FILES_HAVE || kind == FILES_PLACE;
    bool has_chunks = message->chunk_bytes >= FILES_CHUNK_MIN && message->chunk_bytes <= FILES_CHUNK_MAX &&
                      message->chunk_bytes % FILES_CHUNK_MIN == 0;
    return kind >= FILES_PING && kind < FILES_KINDS && message->size <= INT64_MAX / 2 &&
           memchr(message->text, 0, FILES_TEXT_MAX) != NULL && (has_chunks || !names_chunks);
}

const char *files_digest_format(const struct alb_digest *digest, char text[FILES_DIGEST_TEXT])
{
    snprintf(text, FILES_DIGEST_TEXT, "%016llx%016llx", (unsigned long long)digest->high,
             (unsigned long long)digest->low);
    return text;
}
