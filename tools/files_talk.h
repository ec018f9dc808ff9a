// SPDX-License-Identifier: BSD-2-Clause
// The two conversations of `albedo cp` and `albedo serve`: one sends, the other receives, whichever side asked for it.
#pragma once

#include "tools/files_send.h"
#include "tools/files_sink.h"

// Ends the conversation: tells the peer why. may_pass: another try may be of use, as when descriptors were short.
void files_refuse(struct files_link *link, const char *why, bool may_pass);
// The peer has said so: quotes it. LOST if it may pass, else FAILED.
enum files_result files_refused(const struct files_link *link, const struct files_message *message,
                                char why[FILES_WHY_MAX]);
// True for what passes when others have ended: descriptors, memory.
bool files_may_pass(int error);

// The peer has said what it will send: receives it. progress may be NULL.
enum files_result files_receive_file(struct files_link *link, struct files_sink *sink, struct progress *progress,
                                     struct alb_digest *digest, char why[FILES_WHY_MAX]);
// What will be sent is announced: waits for where to put it, sends it, has it verified.
enum files_result files_send_file(struct files_link *link, int fd, uint64_t size, uint32_t chunk_bytes,
                                  struct progress *progress, struct alb_digest *digest, char why[FILES_WHY_MAX]);
