// SPDX-License-Identifier: BSD-2-Clause
// Which process listens for which service: the part of the host directory by which a connection request finds its
// process. A service that a process listens for, or has bound a port of, is a small file named after network namespace,
// kind of device (the number of its connection manager's queue pair), service and address. Its process keeps it locked
// while it lives, so a claim ends with any kind of death (also while a forked child lives on), and looking one up is a
// matter of opening at most three files. Claims are seen among processes of one user.
#pragma once

#include "base/addr.h"
#include "base/list.h"

// Stays where it is while it is held. A child of the process does not hold it.
struct alb_cm_claim {
    int fd; // locked; -1: nothing is claimed
    char *path;
    struct alb_list link; // of those that the process holds
};

struct alb_cm_place {
    uint8_t gsi_index; // number of the connection manager's queue pair in its slot
    uint64_t service_id;
    struct alb_addr addr; // one address; ::ffff:0.0.0.0: any of IPv4; ::: any
    bool is_one_family;   // :: does not stand for IPv4
    uint8_t slot;
};

// EADDRINUSE: another claim of this user stands for the service at such an address; else why the directory cannot be
// written, or other claims cannot be read, as when descriptors have run out, which is said once.
int alb_cm_claim(struct alb_cm_claim *claim, const struct alb_cm_place *place);
// From here on requests are looked for there; a claim alone only keeps others away.
int alb_cm_claim_listen(struct alb_cm_claim *claim);
// Harmless if nothing is claimed.
void alb_cm_claim_end(struct alb_cm_claim *claim);

// The slot of the process that listens for a service at that address; a claim for this address wins over one for any.
// ENOENT: there is none. EMFILE, ENFILE: this process does not, and cannot look who does.
int alb_cm_claim_find(uint8_t gsi_index, uint64_t service_id, const struct alb_addr *local, uint8_t *slot);
