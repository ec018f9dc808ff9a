// SPDX-License-Identifier: BSD-2-Clause
// The loss policies of csa, chosen by name: what the sender treats as lost, and what the receiver reports when. The
// mechanism around them - records, reports, probes - is the same for all. docs/POLICIES.md has the source of each.
#pragma once

#include "base/types.h"

struct alb_csa_loss_ops;

// A policy with its parameters. What a parameter means is the policy's; those without a meaning stay 0.
struct alb_csa_loss {
    const struct alb_csa_loss_ops *ops;
    alb_time interval_ns;     // fixed: between reports; the receiver's patience. 0: by its own reckoning
    alb_time low_ns, high_ns; // irn: timeout with at most few segments in flight, and with more
    alb_time timeout_ns;      // go-back-n: timeout
    uint64_t few;             // irn
    uint64_t threshold;       // irn, sleek: one is lost when the peer holds one so many PSNs behind it
};

// One segment in flight, as a report leaves it. Times in ns.
struct alb_loss_segment {
    alb_time age_ns;          // since it last left
    alb_time path_rtt_ns;     // its path's, smoothed; 0: not measured
    alb_time path_rtt_min_ns; // its path's least; 0: not measured
    alb_time overtaken_ns;    // how much later the newest that the peer holds left; 0: it did not, or that is not known
    uint32_t behind;          // how many PSNs later the newest that the peer holds is; 0: it holds nothing newer
    bool is_settled;          // the peer knows whether its packet came: a segment that it does not hold is lost
    bool was_resent;          // it has left more than once
};

// The stream that it belongs to, and the report.
struct alb_loss_sending {
    alb_time rtt_ns, margin_ns; // alb_assoc_rtt_ns, alb_assoc_margin_ns
    alb_time rtt_newest_ns;     // of alb_assoc_live; 0: none
    alb_time tail_rtt_ns;       // the round trip of most paths, if nothing new is to be sent; else 0
    uint32_t flying;            // segments that are not acknowledged
    bool is_nak;                // the report says that a segment came before its turn and was dropped
    bool answers_probe;         // the report came after a probe
    bool has_many_paths;        // so many that few packets of a window leave by each
    bool is_overdue;            // the report was written because something is overdue, or was probed for
};

enum alb_loss_silence {
    ALB_LOSS_PROBE,      // the newest segment goes again, to get an answer
    ALB_LOSS_RESEND_ALL, // all of what is unacknowledged is taken for lost
};

struct alb_csa_loss_ops {
    const char *name;
    void (*init)(struct alb_csa_loss *loss); // sets default parameters; NULL: there are none
    // Sender: true if the segment, which the peer does not hold, is to be sent again. Called after a report.
    bool (*is_lost)(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                    const struct alb_loss_sending *sending);
    // Sender: how long nothing may be sent or reported before on_silence is done; the engine doubles it each time.
    alb_time (*silence_ns)(const struct alb_csa_loss *loss, const struct alb_loss_sending *sending);
    bool waits_round_trip; // silence_ns is never less than a round trip
    enum alb_loss_silence on_silence;
    bool asks_together; // streams whose peer is silent as a whole send one probe (csa_hearing.c)
    // Sender: a hole means that everything behind it goes again as well.
    bool goes_back;
    // Receiver: takes segments that come before their turn; else it drops them, and says so once (a NAK).
    bool takes_early;
    // Receiver: reports at once what shows a hole; when a path has settled that packets are lost; when the rest is
    // overdue (by its own reckoning, or after interval_ns).
    bool reports_holes, reports_settled, watches_tail;
};

extern const struct alb_csa_loss_ops alb_csa_loss_csa;
extern const struct alb_csa_loss_ops alb_csa_loss_gbn;
extern const struct alb_csa_loss_ops alb_csa_loss_irn;
extern const struct alb_csa_loss_ops alb_csa_loss_fixed;
extern const struct alb_csa_loss_ops alb_csa_loss_sleek;

// Reads "irn", or with parameters behind a colon "irn:low=100us,high=320us,few=3", into *loss. False: no such policy or
// parameter, one given twice, a value out of range, or text is NULL; *loss is then undefined.
bool alb_csa_loss_parse(const char *text, struct alb_csa_loss *loss);
// The parameters of the policy with that name, and in *bounds what they can be, such as "1us..10s"; NULL behind the
// last.
const char *alb_csa_loss_parameter(const char *policy, uint32_t index, const char **bounds);
