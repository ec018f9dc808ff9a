// SPDX-License-Identifier: BSD-2-Clause
// A scenario file as text: sections of keys with values, each with the line it stands in. What the keys mean is
// sim/scenario.h's.
//
//     # a comment
//     [network]
//     topology = fat-tree          # a comment after a value
//     [workload background]        <- a section with a name
//     size = 64K
//
// A document can be changed by one more line, as `--set` gives it: "network.topology=star",
// "workload.background.size=1M", "variant.lossy.host.loss=fixed", "expect.background.done=4".
#pragma once

#include "sim/complaint.h"

#define ALB_DOCUMENT_WORD_MAX    64   // of a section, a name, a key
#define ALB_DOCUMENT_VALUE_MAX   400  // and of a value
#define ALB_DOCUMENT_ENTRIES_MAX 2048 // of a file: each is compared with the others

struct alb_document_entry {
    char section[ALB_DOCUMENT_WORD_MAX];
    char name[ALB_DOCUMENT_WORD_MAX]; // of the section; may be empty
    char key[ALB_DOCUMENT_WORD_MAX];  // empty: the section's own line
    char value[ALB_DOCUMENT_VALUE_MAX];
    const char *file; // or "--set"
    uint32_t line;    // 0: none
};

struct alb_document {
    const char *file; // its name, the caller's
    struct alb_document_entry *entries;
    uint32_t count, capacity;
};

// False: malformed, and the complaint says where; the document then is empty. file must outlive it.
bool alb_document_parse(struct alb_document *document, const char *file, const char *text, size_t length,
                        struct alb_complaint *complaint);
void alb_document_fini(struct alb_document *document);

// "section.key=value" or "section.name.key=value": replaces the entry, or adds it. setting must outlive the document.
bool alb_document_set(struct alb_document *document, const char *setting, struct alb_complaint *complaint);
// The same with its parts apart. file and line are where it is said: a line of a file does not replace what was said
// outside of it, which has line 0.
bool alb_document_put(struct alb_document *document, const char *path, const char *value, const char *file,
                      uint32_t line, struct alb_complaint *complaint);
// Adds the line of the section that entry number index is in, as if it stood there.
void alb_document_begin(struct alb_document *document, uint32_t index);
// A document of its own with the same entries.
void alb_document_copy(struct alb_document *document, const struct alb_document *from);

// The entry, or NULL.
const struct alb_document_entry *alb_document_find(const struct alb_document *document, const char *section,
                                                   const char *name, const char *key);
