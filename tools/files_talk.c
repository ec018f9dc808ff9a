// SPDX-License-Identifier: BSD-2-Clause
// Sending and receiving one file.
#include "tools/files_talk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool files_may_pass(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

enum files_result files_refused(const struct files_link *link, const struct files_message *message,
                                char why[FILES_WHY_MAX])
{
    files_link_quote(link, message, why);
    return message->size == 1 ? FILES_LOST : FILES_FAILED;
}

void files_refuse(struct files_link *link, const char *why, bool may_pass)
{
    struct files_message message = {.kind = FILES_REFUSED, .size = may_pass};
    snprintf(message.text, sizeof(message.text), "%s", why);
    files_link_say(link, &message);
    files_link_reach(link);
}

static enum files_result lose(char why[FILES_WHY_MAX])
{
    snprintf(why, FILES_WHY_MAX, "the connection was lost");
    return FILES_LOST;
}

// Hears a message of that kind, or why there will be none.
static enum files_result expect(struct files_link *link, enum files_kind kind, struct files_message *message,
                                char why[FILES_WHY_MAX])
{
    if (!files_link_hear(link, message))
        return lose(why);
    if (message->kind == kind)
        return FILES_OK;
    if (message->kind == FILES_REFUSED)
        return files_refused(link, message, why);
    snprintf(why, FILES_WHY_MAX, "the other side says what makes no sense here; is it of another version?");
    return FILES_FAILED;
}

// Lets the peer send until it says something, or is gone.
static void watch(struct files_link *link, struct files_sink *sink, struct progress *progress)
{
    struct ibv_wc wc;
    uint64_t before = sink->count(sink);
    progress_add(progress, before, true);
    while (link->inbox_count == 0 && files_link_wait(link, &wc, 100) >= 0) {
        uint64_t there = sink->count(sink);
        progress_add(progress, there - before, false);
        before = there;
    }
}

enum files_result files_receive_file(struct files_link *link, struct files_sink *sink, struct progress *progress,
                                     struct alb_digest *digest, char why[FILES_WHY_MAX])
{
    struct files_message message = {.kind = FILES_PLACE, .size = sink->size, .chunk_bytes = sink->chunk_bytes};
    sink->place(sink, &message.place);
    if (!files_link_say(link, &message))
        return lose(why);
    if (progress)
        watch(link, sink, progress);
    enum files_result result = expect(link, FILES_DONE, &message, why);
    if (result != FILES_OK)
        return result;
    *digest = message.digest;
    if (!sink->finish(sink, digest, why)) {
        files_refuse(link, why, false);
        return FILES_FAILED;
    }
    message = (struct files_message){.kind = FILES_VERIFIED, .digest = *digest};
    files_link_part(link);
    // It has its name by now, whether the sender hears of it or not.
    files_link_say(link, &message);
    files_link_reach(link);
    return FILES_OK;
}

enum files_result files_send_file(struct files_link *link, int fd, uint64_t size, uint32_t chunk_bytes,
                                  struct progress *progress, struct alb_digest *digest, char why[FILES_WHY_MAX])
{
    struct files_message message;
    enum files_result result = expect(link, FILES_PLACE, &message, why);
    if (result != FILES_OK)
        return result;
    result = files_send(link, fd, size, chunk_bytes, &message.place, progress, digest, why);
    if (result == FILES_CHANGED || result == FILES_FAILED)
        files_refuse(link, why, false);
    if (result != FILES_OK)
        return result;
    message = (struct files_message){.kind = FILES_DONE, .size = size, .digest = *digest};
    if (!files_link_say(link, &message))
        return lose(why);
    result = expect(link, FILES_VERIFIED, &message, why);
    if (result == FILES_OK && !alb_digest_is_equal(&message.digest, digest)) {
        snprintf(why, FILES_WHY_MAX, "the other side has committed something else");
        result = FILES_FAILED;
    }
    return result;
}
