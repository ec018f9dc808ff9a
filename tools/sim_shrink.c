// SPDX-License-Identifier: BSD-2-Clause
#include "tools/sim_shrink.h"

#include <stdio.h>
#include <string.h>

// A fault has its times for as long as it is there: without its end it lasts, without its beginning it is longer than
// retries last, and then messages fail rightly.
static bool may_go(const struct alb_document_entry *entry)
{
    bool is_time = strcmp(entry->key, "until") == 0 || strcmp(entry->key, "at") == 0;
    return !(is_time && strcmp(entry->section, "fault") == 0);
}

// Without entry number index, or if it begins a section, without all of that.
static void leave_out(struct alb_document *smaller, const struct alb_document *document, uint32_t index)
{
    const struct alb_document_entry *out = &document->entries[index];
    uint32_t kept = 0;
    alb_document_copy(smaller, document);
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        bool is_of_it = strcmp(entry->section, out->section) == 0 && strcmp(entry->name, out->name) == 0;
        if (i != index && !(out->key[0] == '\0' && is_of_it))
            smaller->entries[kept++] = *entry;
    }
    smaller->count = kept;
}

// Whether it fails in the same way without that entry; then it is left out.
static bool try_without(struct alb_document *document, uint32_t index, enum sim_verdict verdict, char why[SIM_WHY_MAX],
                        sim_judge judge)
{
    struct alb_document smaller;
    char other[SIM_WHY_MAX];
    if (!may_go(&document->entries[index]))
        return false;
    leave_out(&smaller, document, index);
    if (judge(&smaller, other) != verdict) {
        alb_document_fini(&smaller);
        return false;
    }
    alb_document_fini(document);
    *document = smaller;
    snprintf(why, SIM_WHY_MAX, "%s", other);
    return true;
}

void sim_shrink(struct alb_document *document, enum sim_verdict verdict, char why[SIM_WHY_MAX], sim_judge judge)
{
    bool has_shrunk = true;
    while (has_shrunk) {
        has_shrunk = false;
        for (uint32_t i = document->count; i-- > 0;)
            if (i < document->count)
                has_shrunk |= try_without(document, i, verdict, why, judge);
    }
}
