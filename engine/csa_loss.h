// SPDX-License-Identifier: BSD-2-Clause
// The loss policies of csa, chosen by name: what the sender treats as lost, and what the receiver reports when. The
// mechanism around them - records, reports, probes - is the same for all. docs/POLICIES.md has the source of each.
#pragma once

#include "base/types.h"

struct alb_csa_loss_ops;

// A policy with its parameters. What a parameter means is the policy's; those without a meaning stay 0.
struct alb_csa_loss {
    const struct alb_csa_loss_ops *ops;
    alb_time interval_ns;     // fixed: of reports, and of patience
    alb_time low_ns, high_ns; // irn: timeouts with few segments in flight, and with more
    alb_time timeout_ns;      // go-back-n
    uint64_t few;             // irn: how many are few
    uint64_t threshold;       // sleek: segments behind one before it is lost
};

// One unacknowledged segment, as a report leaves it.
struct alb_loss_segment {
    alb_time age_ns;      // since it last left
    alb_time path_rtt_ns; // of its path, 0: not measured
    alb_time path_rtt_min_ns;
    alb_time overtaken_ns; // by how much the newest that the peer holds left later; 0: not
    uint32_t behind;       // PSNs between it and the newest that the peer holds; 0: nothing newer is held
    bool is_settled;       // the peer has settled its packet: it has come or is lost
    bool was_resent;
};

struct alb_loss_sending {
    alb_time rtt_ns, margin_ns; // of the association
    alb_time rtt_newest_ns;     // of what came last, 0: not known
    alb_time tail_rtt_ns;       // nothing new is to be sent, and over most paths it would be back by then; 0: else
    uint32_t flying;            // segments that are not acknowledged
    bool is_nak;                // the report says that a segment came before its turn and was dropped
    bool answers_probe;         // the report came after a probe
    bool has_many_paths;        // few packets of a window leave by each
    bool is_overdue;            // the report was written because something is overdue, or was probed for
};

enum alb_loss_silence {
    ALB_LOSS_PROBE,      // the newest segment goes again, to get an answer
    ALB_LOSS_RESEND_ALL, // all of what is unacknowledged is taken for lost
};

struct alb_csa_loss_ops {
    const char *name;
    void (*init)(struct alb_csa_loss *loss); // default parameters
    // Sender: true if the segment is to be sent again.
    bool (*is_lost)(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                    const struct alb_loss_sending *sending);
    // Sender: how long after the last sign of life silence is acted upon, and how.
    alb_time (*silence_ns)(const struct alb_csa_loss *loss, const struct alb_loss_sending *sending);
    bool waits_round_trip; // it is never less than a round trip
    enum alb_loss_silence on_silence;
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

// "irn", or with parameters behind a colon: "irn:low=100us,high=320us,few=3". False: no such policy or parameter, or a
// value out of range.
bool alb_csa_loss_parse(const char *text, struct alb_csa_loss *loss);
