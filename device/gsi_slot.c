// SPDX-License-Identifier: BSD-2-Clause
#include "device/gsi_slot.h"

#include "device/cancel.h"
#include "device/cm_claim.h"
#include "device/directory_file.h"
#include "wire/cm.h"
#include "wire/datagram.h"

#include <errno.h>

static enum alb_gsi_place slot_of_id(uint32_t communication_id, uint8_t *slot)
{
    if (communication_id == ALB_CM_NEVER_REMOTE)
        return ALB_GSI_HOLDER;
    *slot = (uint8_t)(communication_id >> 24);
    return ALB_GSI_SLOT;
}

// What a request is looked up by.
struct question {
    uint8_t gsi_index;
    uint64_t service_id;
    const struct alb_addr *local;
};

static struct alb_gsi_found *place_of(struct alb_gsi_finder *finder, const struct question *question)
{
    return &finder->found[question->service_id % ALB_GSI_FOUND];
}

static bool remembers(const struct alb_gsi_found *found, const struct question *question, alb_time now)
{
    return now < found->until && found->service_id == question->service_id && found->gsi_index == question->gsi_index &&
           alb_addr_equals(&found->local, question->local);
}

static bool may_look_up(struct alb_gsi_finder *finder, alb_time now)
{
    if (now - finder->period_began >= ALB_GSI_PERIOD_NS) {
        finder->period_began = now;
        finder->lookups = 0;
    }
    return finder->lookups < ALB_GSI_LOOKUPS;
}

// Nobody else would say why connections do not come about.
static void complain(struct alb_gsi_finder *finder, int error)
{
    if (finder->has_complained)
        return;
    finder->has_complained = true;
    int cancel = alb_cancel_off();
    alb_directory_complain(error, "requests to connect by rdma_cm stay unanswered");
    alb_cancel_back(cancel);
}

static enum alb_gsi_place look_up(struct alb_gsi_finder *finder, const struct question *question, alb_time now,
                                  uint8_t *slot)
{
    if (!may_look_up(finder, now))
        return ALB_GSI_UNKNOWN;
    finder->lookups++;
    int error = alb_cm_claim_find(question->gsi_index, question->service_id, question->local, slot);
    if (error == ENOENT)
        return ALB_GSI_HOLDER;
    if (error) {
        complain(finder, error);
        return ALB_GSI_UNKNOWN;
    }
    *place_of(finder, question) = (struct alb_gsi_found){
        .until = now + ALB_GSI_FOUND_NS,
        .service_id = question->service_id,
        .local = *question->local,
        .gsi_index = question->gsi_index,
        .slot = *slot,
    };
    return ALB_GSI_SLOT;
}

static enum alb_gsi_place slot_of_service(struct alb_gsi_finder *finder, const struct question *question, alb_time now,
                                          uint8_t *slot)
{
    const struct alb_gsi_found *found = place_of(finder, question);
    if (!remembers(found, question, now))
        return look_up(finder, question, now, slot);
    *slot = found->slot;
    return ALB_GSI_SLOT;
}

enum alb_gsi_place alb_gsi_slot(struct alb_gsi_finder *finder, const uint8_t *bytes, uint32_t length,
                                const struct alb_addr *local, alb_time now, uint8_t *slot)
{
    struct alb_roce roce;
    struct alb_cm_message message;
    uint32_t offset, payload_bytes;
    if (length < ALB_ICRC_BYTES ||
        alb_roce_decode(bytes, length - ALB_ICRC_BYTES, &roce, &offset, &payload_bytes) != ALB_DROP_NONE ||
        roce.opcode != ALB_UD_SEND_ONLY || !alb_cm_decode(bytes + offset, payload_bytes, &message))
        return ALB_GSI_HOLDER;
    struct question question = {.gsi_index = (uint8_t)roce.dest_qpn, .local = local};
    switch (message.type) {
    case ALB_CM_REQ:
        question.service_id = message.req.service_id;
        return slot_of_service(finder, &question, now, slot);
    case ALB_CM_SIDR_REQ:
        question.service_id = message.sidr_req.service_id;
        return slot_of_service(finder, &question, now, slot);
    case ALB_CM_SIDR_REP: // its request id is the asker's
        return slot_of_id(message.local_id, slot);
    default:
        return slot_of_id(message.remote_id, slot);
    }
}
