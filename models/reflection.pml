/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The two-party protocol of reflection (docs/REFLECTION.md): one initiator, one target, N transactions of one queue
 * pair that all write the same two words. check.py says which configurations are checked, and how.
 *
 * What is abstracted. A frame of the network is a bit in a set: once sent it may arrive at any time later, in any
 * order, any number of times, or never, even in a later life of the receiver: no rule below leans on epochs or on
 * sequence numbers for commands and verdicts. Only the stream (parts and proposal) is delivered in order and at most
 * once, and dies with its queue pair. A handler runs in one step; a crash may come between any two. What a handler
 * writes to the journal and what it sends are one step, since "sent and lost" is the same as "not sent". Digests are
 * perfect: bytes are good or bad. With LIVE faults end some day, and every frame is delivered once then.
 *
 * Configuration: N, DURABLE, TARGET_CRASHES, INITIATOR_CRASHES, BREAKS (of the queue pair), CORRUPTIONS,
 * JOURNAL_ERRORS, LIVE. M_...: one deliberate mistake each, which must be found.
 */
#ifndef N
#define N 1
#endif
#ifndef TARGET_CRASHES
#define TARGET_CRASHES 0
#endif
#ifndef INITIATOR_CRASHES
#define INITIATOR_CRASHES 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef CORRUPTIONS
#define CORRUPTIONS 0
#endif
#ifndef JOURNAL_ERRORS
#define JOURNAL_ERRORS 0
#endif
#ifdef DURABLE
#define IS_DURABLE true
#else
#define IS_DURABLE false
#endif
#ifdef LIVE
#define IS_LIVE true
#else
#define IS_LIVE false
#endif
#define KEEPERS 3 /* 0: not known; 1, 2: the target's lives (volatile), 1: the journal (durable) */

/* ---- the network ------------------------------------------------------------------------------------------ */

#define ASK    0
#define COMMIT 1
#define ABORT  2

#define PENDING   0
#define REFLECTED 1
#define COMMITTED 2
#define ABORTED   3
#define CORRUPT   4
#define UNKNOWN   5

#define COMMAND_BIT(type, keeper) (1 << ((type) * KEEPERS + (keeper)))
#define VERDICT_BIT(state, keeper) (1 << ((state) * 2 + (keeper) - 1))

short commands[N]; /* sent, and not used up */
short verdicts[N];
byte low_water_sent; /* the highest one in any frame */

#define STREAM_NONE     0
#define STREAM_FLIGHT   1
#define STREAM_PARTS    2 /* the parts have been executed */
#define STREAM_EXECUTED 3 /* the proposal, too */
#define STREAM_DEAD     4
byte stream[N];

bool faults_over;
#define FAULTY (!IS_LIVE || !faults_over)

/* ---- the initiator ---------------------------------------------------------------------------------------- */

#define I_IDLE       0
#define I_TENTATIVE  1
#define I_REFLECTING 2 /* COMMIT has been sent */
#define I_ABORTING   3
#define I_IN_DOUBT   4
#define I_COMMITTED  5
#define I_ABORTED    6
#define I_UNKNOWN    7
#define I_CORRUPT    8
byte istate[N];
byte ikeeper[N];
bool iacked[N];      /* the stream is known to have been executed */
bool ipair = true;   /* the queue pair lives */
bool ifirst = true;  /* first life of the process */
#define ENDED(n) (istate[n] >= I_COMMITTED)

/* ---- the target ------------------------------------------------------------------------------------------- */

#define T_NONE       0
#define T_TENTATIVE  1
#define T_PROPOSED   2 /* the program is asked; ranges are claimed from here on */
#define T_PREPARING  3
#define T_REFLECTING 4
#define T_COMMITTING 5
#define T_APPLY      6 /* readers are out, the first word is not copied yet */
#define T_APPLY_HALF 7
#define T_ABORTING   8 /* ABORT is being written */
#define T_COMMITTED  9
#define T_ABORTED    10
#define T_CORRUPT    11
byte tstate[N];
byte tkeeper = 1;
byte tlow;            /* highest low-water mark seen of the initiator */
bool tentry;          /* the initiator is known */
bool tpair = true;
bool tup = true;
bool tstaged_bad[N];
bool poisoned;
bool held;            /* readers are out */
byte memory[2];       /* whose bytes: 0 nobody's, n + 1, BAD */
#define BAD (N + 1)
byte tries;
#define TRIES_MAX 2

#define CLAIMS(n) (tstate[n] >= T_PROPOSED && tstate[n] <= T_ABORTING)
#ifdef M_NO_CLAIMS
#define OTHER_CLAIMS(n) false
#else
#define OTHER_CLAIMS(n) (N > 1 && CLAIMS(N - 1 - (n)))
#endif

#define J_NONE    0
#define J_PREPARE 1
#define J_COMMIT  2
#define J_APPLIED 3 /* COMMIT, and the mark that the file has the bytes */
#define J_ABORT   4
byte journal[N];
byte journal_low;
byte journal_newest; /* whose COMMIT was written last: redone last */

/* ---- what only the properties look at --------------------------------------------------------------------- */

#define R_COMMITTED 1
#define R_ABORTED   2
#define R_UNKNOWN   4
#define R_CORRUPT   8
byte reported[N];
bool decided[N];      /* somebody on the initiator's side has decided for COMMIT */
bool bound[N];
bool outlives[N];     /* it was bound, and not given up, when a durable target was killed */
bool exposed[N];      /* a reader could see its bytes */
bool reached[N];      /* the target was COMMITTED */
bool spoilt[N];       /* the target was CORRUPT */
bool said_aborted[N];
byte newest;          /* whose bytes must be in memory */

byte target_crashes, initiator_crashes, breaks, corruptions, journal_errors;

/* An aborted transaction is never exposed, and nothing is exposed before COMMIT was decided. */
inline expose(n) {
    assert(decided[n]);
    assert(!said_aborted[n]);
    assert(!(reported[n] & R_ABORTED));
    exposed[n] = true
}

/* A reader that is not held out finds one transaction whole, or nothing; and the newest committed one. */
#define SNAPSHOT_OK \
    (held || poisoned || !tup || (memory[0] == memory[1] && memory[0] != BAD && memory[0] == newest))

inline report(n, what) {
    if
    :: what == R_COMMITTED ->
        assert(exposed[n] && reached[n]);
        assert(!(reported[n] & R_ABORTED));
        istate[n] = I_COMMITTED
    :: what == R_ABORTED ->
        assert(!exposed[n] && !reached[n] && !spoilt[n]);
        assert(!(reported[n] & (R_COMMITTED | R_CORRUPT)));
        istate[n] = I_ABORTED
    :: what == R_CORRUPT ->
        assert(spoilt[n]);
        istate[n] = I_CORRUPT
    :: what == R_UNKNOWN ->
        istate[n] = I_UNKNOWN
    fi;
    reported[n] = reported[n] | what;
    if
    :: ipair && low_water_sent == 0 && ENDED(0) ->
        low_water_sent = 1;
        if
        :: N > 1 && ENDED(N - 1) -> low_water_sent = N
        :: else
        fi
    :: ipair && N > 1 && low_water_sent == 1 && ENDED(N - 1) -> low_water_sent = N
    :: else
    fi
}

/* ---- initiator: what it does by itself -------------------------------------------------------------------- */

inline send_command(n, type) {
    commands[n] = commands[n] | COMMAND_BIT(type, ikeeper[n]);
    if
    :: type == COMMIT -> decided[n] = true
    :: else
    fi
}

#ifdef M_SUCCESSOR_DECIDES
#define MAY_DECIDE(n) true
#else
#define MAY_DECIDE(n) decided[n]
#endif
#define NOT_SENT(n, type) ((commands[n] & COMMAND_BIT(type, ikeeper[n])) == 0)

/* After a crash of its process nothing is left but the token: the program saved it with or without a keeper, and has
 * lost every outcome that it was told. */
inline initiator_crash(n) {
    if
    :: istate[n] != I_IDLE ->
        istate[n] = I_IN_DOUBT;
        iacked[n] = false;
        if
        :: ikeeper[n] = 0
        :: true
        fi
    :: else
    fi
}

inline pair_fails(n) {
    if
#ifdef M_DOUBT_IS_SUCCESS
    :: istate[n] == I_REFLECTING -> report(n, R_COMMITTED)
#else
    :: istate[n] == I_REFLECTING -> istate[n] = I_IN_DOUBT
#endif
    :: istate[n] == I_TENTATIVE || istate[n] == I_ABORTING -> report(n, R_ABORTED)
    :: else
    fi
}

proctype Initiator(byte n) {
end:
    do
    :: atomic { /* posts, in order */
        istate[n] == I_IDLE && ipair && (n == 0 || istate[n - 1] != I_IDLE) ->
        istate[n] = I_TENTATIVE;
        stream[n] = STREAM_FLIGHT
       }
    :: atomic { /* the stream is acknowledged: commands cannot overtake the proposal any more */
        ipair && stream[n] == STREAM_EXECUTED && !iacked[n] && (istate[n] == I_TENTATIVE || istate[n] == I_ABORTING) ->
        iacked[n] = true
       }
#ifndef M_NO_REPEAT
    :: atomic {
        iacked[n] && istate[n] == I_TENTATIVE && NOT_SENT(n, ASK) -> send_command(n, ASK)
       }
    :: atomic {
        istate[n] == I_REFLECTING && NOT_SENT(n, COMMIT) -> send_command(n, COMMIT)
       }
#endif
    :: atomic {
        iacked[n] && istate[n] == I_ABORTING && NOT_SENT(n, ABORT) -> send_command(n, ABORT)
       }
    :: atomic { /* deadline, or the program withdraws it */
        istate[n] == I_TENTATIVE && FAULTY -> istate[n] = I_ABORTING
       }
#ifdef M_ABORT_AFTER_COMMIT
    :: atomic {
        istate[n] == I_REFLECTING -> report(n, R_ABORTED)
       }
#endif
    :: atomic { /* reconcile: asks, or decides */
        istate[n] == I_IN_DOUBT && NOT_SENT(n, ASK) -> send_command(n, ASK)
       }
    :: atomic { /* only who has decided so before, and remembers */
        istate[n] == I_IN_DOUBT && MAY_DECIDE(n) && NOT_SENT(n, COMMIT) -> send_command(n, COMMIT)
       }
    :: atomic {
        istate[n] == I_IN_DOUBT && NOT_SENT(n, ABORT) -> send_command(n, ABORT)
       }
    od
}

/* ---- initiator: a verdict --------------------------------------------------------------------------------- */

inline verdict(n, state, keeper) {
    if
#ifdef M_RELEARN_KEEPER
    :: istate[n] >= I_TENTATIVE && !ENDED(n) -> ikeeper[n] = keeper
#else
    :: ikeeper[n] == 0 && state != UNKNOWN && state != ABORTED && istate[n] != I_IDLE && !ENDED(n) ->
        ikeeper[n] = keeper
#endif
    :: else
    fi;
    if
    :: istate[n] == I_TENTATIVE && state == REFLECTED ->
        assert(bound[n]); /* what a completion at level "reflected" says */
        if
        :: istate[n] = I_REFLECTING; send_command(n, COMMIT)
        :: FAULTY -> istate[n] = I_ABORTING /* the program decides so */
        fi
    :: istate[n] == I_TENTATIVE && (state == ABORTED || state == UNKNOWN) -> report(n, R_ABORTED)
    :: istate[n] == I_ABORTING && (state == ABORTED || state == UNKNOWN) -> report(n, R_ABORTED)
    :: (istate[n] == I_TENTATIVE || istate[n] == I_ABORTING) && (state == COMMITTED || state == CORRUPT) ->
        assert(false) /* nobody has decided */
    :: (istate[n] == I_REFLECTING || istate[n] == I_IN_DOUBT) && state == COMMITTED -> report(n, R_COMMITTED)
    :: (istate[n] == I_REFLECTING || istate[n] == I_IN_DOUBT) && state == ABORTED -> report(n, R_ABORTED)
    :: (istate[n] == I_REFLECTING || istate[n] == I_IN_DOUBT) && state == CORRUPT -> report(n, R_CORRUPT)
    :: (istate[n] == I_REFLECTING || istate[n] == I_IN_DOUBT) && state == UNKNOWN -> report(n, R_UNKNOWN)
    :: else
    fi
}

inline take_verdict(n, state, keeper) {
#ifdef LIVE
    verdicts[n] = verdicts[n] & ~VERDICT_BIT(state, keeper);
#endif
    verdict(n, state, keeper)
}

#define V_READY(n, state, keeper) (verdicts[n] & VERDICT_BIT(state, keeper))

proctype VerdictNetwork(byte n) {
end:
    do
    :: atomic { V_READY(n, PENDING, 1) -> take_verdict(n, PENDING, 1) }
    :: atomic { V_READY(n, REFLECTED, 1) -> take_verdict(n, REFLECTED, 1) }
    :: atomic { V_READY(n, COMMITTED, 1) -> take_verdict(n, COMMITTED, 1) }
    :: atomic { V_READY(n, ABORTED, 1) -> take_verdict(n, ABORTED, 1) }
    :: atomic { V_READY(n, CORRUPT, 1) -> take_verdict(n, CORRUPT, 1) }
    :: atomic { V_READY(n, UNKNOWN, 1) -> take_verdict(n, UNKNOWN, 1) }
#if TARGET_CRASHES > 0 && !defined(DURABLE)
    :: atomic { V_READY(n, PENDING, 2) -> take_verdict(n, PENDING, 2) }
    :: atomic { V_READY(n, REFLECTED, 2) -> take_verdict(n, REFLECTED, 2) }
    :: atomic { V_READY(n, COMMITTED, 2) -> take_verdict(n, COMMITTED, 2) }
    :: atomic { V_READY(n, ABORTED, 2) -> take_verdict(n, ABORTED, 2) }
    :: atomic { V_READY(n, CORRUPT, 2) -> take_verdict(n, CORRUPT, 2) }
    :: atomic { V_READY(n, UNKNOWN, 2) -> take_verdict(n, UNKNOWN, 2) }
#endif
#ifdef LIVE
    :: atomic { verdicts[n] != 0 && FAULTY -> verdicts[n] = 0 } /* lost */
#endif
    od
}

/* ---- target: answers -------------------------------------------------------------------------------------- */

inline say(n, state) {
    verdicts[n] = verdicts[n] | VERDICT_BIT(state, tkeeper);
    if
    :: state == ABORTED ->
        assert(!exposed[n]);
        said_aborted[n] = true
    :: else
    fi
}

/* Bound and in the journal: it has to be in the journal that it is not any more, before anybody is told. */
inline target_aborts(n) {
    tstaged_bad[n] = false;
    if
#ifndef M_ABORT_UNJOURNALED
    :: journal[n] == J_PREPARE -> tstate[n] = T_ABORTING
#endif
    :: else -> tstate[n] = T_ABORTED; say(n, ABORTED)
    fi
}

/* PREPARE is being written, and may be in the journal or not: an ABORT has to follow it. */
inline takes_back(n) {
    if
    :: journal[n] = J_PREPARE
    :: true
    fi;
    tstate[n] = T_ABORTING
}

inline target_commits(n) {
    if
#ifdef M_COMMIT_UNJOURNALED
    :: true -> tstate[n] = T_APPLY; held = true
#else
    :: IS_DURABLE -> tstate[n] = T_COMMITTING
    :: else -> tstate[n] = T_APPLY; held = true
#endif
    fi
}

/* Presumed abort: what is not known was not committed, if it would be known. */
#ifdef M_PRESUME_BELOW_LOW_WATER
#define NOT_FORGOTTEN(n) true
#elif defined(M_NO_ENTRY)
#define NOT_FORGOTTEN(n) ((n) >= tlow)
#else
#define NOT_FORGOTTEN(n) (tentry && (n) >= tlow)
#endif
#ifdef M_FOREIGN_KEEPER
#define IS_KEEPER(keeper) true
#else
#define IS_KEEPER(keeper) ((keeper) == tkeeper)
#endif

inline answer(n, type, keeper) {
    if
    :: tstate[n] == T_NONE && IS_KEEPER(keeper) && NOT_FORGOTTEN(n) -> say(n, ABORTED)
    :: tstate[n] == T_NONE && !(IS_KEEPER(keeper) && NOT_FORGOTTEN(n)) -> say(n, UNKNOWN)
    :: tstate[n] == T_PREPARING && type == ABORT -> takes_back(n) /* when it is written */
    :: tstate[n] >= T_TENTATIVE && tstate[n] <= T_REFLECTING && tstate[n] != T_PREPARING && type == ABORT ->
        target_aborts(n)
    :: tstate[n] >= T_TENTATIVE && tstate[n] <= T_PREPARING && type != ABORT -> say(n, PENDING)
    :: tstate[n] == T_REFLECTING && type == ASK -> say(n, REFLECTED)
    :: tstate[n] == T_REFLECTING && type == COMMIT -> target_commits(n)
    :: tstate[n] == T_COMMITTING || tstate[n] == T_APPLY || tstate[n] == T_APPLY_HALF || tstate[n] == T_ABORTING ->
        say(n, PENDING)
    :: tstate[n] == T_COMMITTED -> say(n, COMMITTED)
    :: tstate[n] == T_ABORTED -> say(n, ABORTED)
    :: tstate[n] == T_CORRUPT -> say(n, CORRUPT)
    fi
}

inline take_command(n, type, keeper) {
#ifdef LIVE
    commands[n] = commands[n] & ~COMMAND_BIT(type, keeper);
#endif
    answer(n, type, keeper)
}

#define C_READY(n, type, keeper) (tup && (commands[n] & COMMAND_BIT(type, keeper)))

proctype CommandNetwork(byte n) {
end:
    do
    :: atomic { C_READY(n, ASK, 0) -> take_command(n, ASK, 0) }
    :: atomic { C_READY(n, ASK, 1) -> take_command(n, ASK, 1) }
    :: atomic { C_READY(n, COMMIT, 0) -> take_command(n, COMMIT, 0) }
    :: atomic { C_READY(n, COMMIT, 1) -> take_command(n, COMMIT, 1) }
    :: atomic { C_READY(n, ABORT, 0) -> take_command(n, ABORT, 0) }
    :: atomic { C_READY(n, ABORT, 1) -> take_command(n, ABORT, 1) }
#if TARGET_CRASHES > 0 && !defined(DURABLE)
    :: atomic { C_READY(n, ASK, 2) -> take_command(n, ASK, 2) }
    :: atomic { C_READY(n, COMMIT, 2) -> take_command(n, COMMIT, 2) }
    :: atomic { C_READY(n, ABORT, 2) -> take_command(n, ABORT, 2) }
#endif
#ifdef LIVE
    :: atomic { commands[n] != 0 && FAULTY -> commands[n] = 0 } /* lost */
#endif
    :: atomic { n == 0 && tup && tentry && tlow < low_water_sent -> tlow++ } /* rides in frames */
    od
}

/* ---- target: the stream ----------------------------------------------------------------------------------- */

proctype Stream(byte n) {
end:
    do
    :: atomic { /* the parts: staged, perhaps spoilt on the way or in staging */
        tup && tpair && stream[n] == STREAM_FLIGHT && (n == 0 || stream[n - 1] == STREAM_EXECUTED) ->
        stream[n] = STREAM_PARTS;
        tentry = true;
        if
        :: tstate[n] == T_NONE ->
            tstate[n] = T_TENTATIVE;
            if
            :: corruptions < CORRUPTIONS -> corruptions++; tstaged_bad[n] = true
            :: true
            fi
        :: else
        fi
       }
    :: atomic { /* the proposal */
        tup && tpair && stream[n] == STREAM_PARTS ->
        stream[n] = STREAM_EXECUTED;
        if
        :: tstate[n] == T_NONE -> target_aborts(n) /* its parts were given up, and forgotten */
        :: tstate[n] == T_TENTATIVE && OTHER_CLAIMS(n) -> target_aborts(n) /* busy */
#ifndef M_NO_DIGEST
        :: tstate[n] == T_TENTATIVE && !OTHER_CLAIMS(n) && tstaged_bad[n] -> target_aborts(n) /* digest */
        :: tstate[n] == T_TENTATIVE && !OTHER_CLAIMS(n) && !tstaged_bad[n] -> tstate[n] = T_PROPOSED
#else
        :: tstate[n] == T_TENTATIVE && !OTHER_CLAIMS(n) -> tstate[n] = T_PROPOSED
#endif
        :: else
        fi
       }
    od
}

/* ---- target: what it does by itself ----------------------------------------------------------------------- */

inline binds(n) {
    tstate[n] = T_REFLECTING;
    bound[n] = true;
    say(n, REFLECTED);
    assert(N == 1 || !CLAIMS(N - 1 - n)) /* preconditions and claims hold to the end: nobody else is bound */
#ifdef M_EXPOSE_AT_REFLECT
    ; memory[0] = n + 1; memory[1] = n + 1; newest = n + 1; expose(n)
#endif
}

inline copies(n, word) {
    if
    :: tstaged_bad[n] -> memory[word] = BAD
    :: corruptions < CORRUPTIONS -> corruptions++; memory[word] = BAD
    :: !tstaged_bad[n] -> memory[word] = n + 1
    fi
}

inline exposes(n) {
    newest = n + 1;
    held = false;
    expose(n);
    assert(memory[0] == n + 1 && memory[1] == n + 1); /* exactly these bytes */
    tstate[n] = T_COMMITTED;
    reached[n] = true;
    tries = 0;
    say(n, COMMITTED)
}

inline reads_back(n) {
    if
#ifdef M_NO_READBACK
    :: true -> exposes(n)
#else
#ifdef M_NO_DIGEST
    :: tstaged_bad[n] -> exposes(n) /* it is what was staged */
#endif
    :: memory[0] == n + 1 && memory[1] == n + 1 -> exposes(n)
    :: else ->
        tries++;
        if
        :: tries < TRIES_MAX -> tstate[n] = T_APPLY
        :: else ->
            tstate[n] = T_CORRUPT;
            spoilt[n] = true;
            poisoned = true;
            held = false;
            tries = 0;
            say(n, CORRUPT)
        fi
#endif
    fi
}

#ifdef M_FORGET_EARLY
#define MAY_FORGET(n) true
#else
#define MAY_FORGET(n) ((n) < tlow)
#endif
/* The log is redone from its oldest COMMIT without a mark, so marks are written in its order. */
#ifdef M_MARKS_UNORDERED
#define MAY_MARK(n) true
#else
#define MAY_MARK(n) (N == 1 || journal[N - 1 - (n)] != J_COMMIT || journal_newest != (n))
#endif
/* As for committed: its bytes are in memory, its COMMIT in the journal. */
#ifdef M_FORGET_CORRUPT
#define CORRUPT_MAY_GO(n) true
#else
#define CORRUPT_MAY_GO(n) (MAY_FORGET(n) && !IS_DURABLE)
#endif

inline forgets(n) {
    tstate[n] = T_NONE;
    journal[n] = J_NONE;
    journal_low = (IS_DURABLE -> tlow : 0)
}

#define MAY_EVICT(n) (tstate[n] == T_NONE || tstate[n] >= T_COMMITTED)

proctype Target(byte n) {
end:
    do
    :: atomic { /* the validator agrees */
        tup && tstate[n] == T_PROPOSED ->
        if
#ifdef M_REFLECT_UNJOURNALED
        :: IS_DURABLE -> binds(n)
#else
        :: IS_DURABLE -> tstate[n] = T_PREPARING
#endif
        :: else -> binds(n)
        fi
       }
#ifdef M_REFLECT_UNJOURNALED
    :: atomic { tup && tstate[n] == T_REFLECTING && journal[n] == J_NONE -> journal[n] = J_PREPARE }
#endif
    :: atomic { /* PREPARE is in the journal */
        tup && tstate[n] == T_PREPARING -> journal[n] = J_PREPARE; binds(n)
       }
    :: atomic { /* PREPARE could not be written, or it could, and nobody knows: tried again */
        tup && tstate[n] == T_PREPARING && journal_errors < JOURNAL_ERRORS ->
        journal_errors++;
        journal[n] = J_PREPARE
       }
    :: atomic { /* PREPARE is not in the journal for sure: the disk was full, or a new journal was begun without it */
        tup && tstate[n] == T_PREPARING && journal_errors < JOURNAL_ERRORS ->
        journal_errors++;
        journal[n] = J_NONE;
        tstate[n] = T_ABORTED;
        say(n, ABORTED)
       }
    :: atomic { /* validator says no; lease ends; region gone; the queue pair ended; the initiator's epoch is over */
        tup && tstate[n] >= T_TENTATIVE && tstate[n] <= T_PROPOSED -> target_aborts(n)
       }
#ifndef M_NO_LEASE
    :: atomic { /* lease ends; region gone; the initiator's epoch is over */
        tup && tstate[n] == T_REFLECTING -> target_aborts(n)
       }
#endif
#ifdef M_LEASE_AFTER_COMMIT
    :: atomic { tup && tstate[n] >= T_COMMITTING && tstate[n] <= T_APPLY_HALF -> held = false; target_aborts(n) }
#endif
    :: atomic { /* COMMIT is in the journal */
        tup && tstate[n] == T_COMMITTING ->
        journal[n] = J_COMMIT;
        journal_newest = n;
        tstate[n] = T_APPLY;
        held = true
       }
    :: atomic { /* it may be, and nobody knows: tried again */
        tup && tstate[n] == T_COMMITTING && journal_errors < JOURNAL_ERRORS ->
        journal_errors++;
        journal[n] = J_COMMIT;
        journal_newest = n;
#ifdef M_JOURNAL_ERROR_ABORTS
        tstate[n] = T_ABORTED;
        say(n, ABORTED)
#endif
       }
    :: atomic { /* it is not, for sure: what is bound there is taken back */
        tup && tstate[n] == T_COMMITTING && journal_errors < JOURNAL_ERRORS ->
        journal_errors++;
        journal[n] = J_PREPARE;
        journal_newest = N - 1 - n;
        tstate[n] = T_ABORTING
       }
    :: atomic { /* ABORT is in the journal */
        tup && tstate[n] == T_ABORTING -> journal[n] = J_ABORT; tstate[n] = T_ABORTED; say(n, ABORTED)
       }
    :: atomic { /* it may be: tried again, and PENDING meanwhile */
        tup && tstate[n] == T_ABORTING && journal_errors < JOURNAL_ERRORS ->
        journal_errors++;
        journal[n] = J_ABORT
       }
    :: atomic { /* the copy, word after word, with readers held out */
        tup && tstate[n] == T_APPLY ->
        copies(n, 0);
#ifdef M_NO_HOLD
        held = false;
#endif
        tstate[n] = T_APPLY_HALF
       }
    :: atomic {
        tup && tstate[n] == T_APPLY_HALF -> copies(n, 1); reads_back(n)
       }
    :: atomic { /* the file has it: its mark is written some day */
        tup && tstate[n] == T_COMMITTED && journal[n] == J_COMMIT && MAY_MARK(n) -> journal[n] = J_APPLIED
       }
    :: atomic {
        tup && tstate[n] == T_COMMITTED && MAY_FORGET(n) && journal[n] != J_COMMIT -> forgets(n)
       }
    :: atomic {
        tup && tstate[n] == T_CORRUPT && CORRUPT_MAY_GO(n) -> forgets(n)
       }
    :: atomic { /* aborted ones may go at any time: they are presumed */
        tup && tstate[n] == T_ABORTED && !IS_DURABLE && FAULTY -> forgets(n)
       }
    :: atomic {
        tup && tstate[n] == T_ABORTED && IS_DURABLE && FAULTY && journal[n] != J_PREPARE -> forgets(n)
       }
#ifndef NO_EVICTION
    :: atomic { /* room is made: an initiator whose queue pair has ended is forgotten with its records */
        n == 0 && tup && !tpair && tentry && MAY_EVICT(0) && MAY_EVICT(N - 1) ->
        tstate[0] = T_NONE;
        tstate[N - 1] = T_NONE;
        tentry = false;
        tlow = 0
       }
#endif
    od
}

/* ---- crashes ---------------------------------------------------------------------------------------------- */

inline stream_dies(n) {
    if
    :: stream[n] < STREAM_EXECUTED -> stream[n] = STREAM_DEAD
    :: else
    fi
}

inline restart_volatile(n) {
    tstate[n] = T_NONE
}

inline restart_durable(n) {
    if
    :: journal[n] == J_NONE -> tstate[n] = T_NONE
    :: journal[n] == J_PREPARE -> tstate[n] = T_REFLECTING; bound[n] = true
    :: journal[n] == J_ABORT -> tstate[n] = T_ABORTED
    :: journal[n] == J_COMMIT || journal[n] == J_APPLIED -> tstate[n] = T_COMMITTED; reached[n] = true
    fi;
    assert(!outlives[n] || tstate[n] == T_REFLECTING || tstate[n] == T_COMMITTED);
    outlives[n] = false
}

inline is_killed(n) {
    stream_dies(n);
    tstaged_bad[n] = false;
    outlives[n] = IS_DURABLE && (tstate[n] == T_REFLECTING || tstate[n] == T_COMMITTING);
    tstate[n] = T_NONE;
    machine_crash(n)
}

/* Before anybody reads: what is committed and not marked is copied again, the newest last. */
inline redo(n) {
    if
    :: journal[n] == J_COMMIT ->
        memory[0] = n + 1;
        memory[1] = n + 1;
        expose(n)
    :: else
    fi
}

/* The page cache is all that is left of a file whose journal was not synchronised: the machine's crash takes it. */
inline machine_crash(n) {
#ifdef M_PAGE_CACHE
    if
    :: journal[n] == J_COMMIT || journal[n] == J_APPLIED -> journal[n] = J_NONE; newest = 0; memory[0] = 0; memory[1] = 0
    :: true
    fi
#else
    skip
#endif
}

proctype Faults() {
end:
    do
    :: atomic { /* the target's process is killed */
        tup && target_crashes < TARGET_CRASHES && FAULTY ->
        target_crashes++;
        tup = false;
        tpair = false;
        held = false;
        poisoned = false;
        tries = 0;
        is_killed(0);
#if N > 1
        is_killed(1);
#endif
        tentry = false;
        tlow = 0
       }
    :: atomic {
        !tup ->
#ifdef DURABLE
        restart_durable(0);
#if N > 1
        restart_durable(1);
        if
        :: journal_newest == 0 -> redo(1); redo(0)
        :: else -> redo(0); redo(1)
        fi;
        if /* what was on its way to memory counts from here on */
        :: journal[journal_newest] == J_COMMIT -> newest = journal_newest + 1
        :: else
        fi;
        assert(tstate[0] != T_REFLECTING || tstate[1] != T_REFLECTING);
#else
        redo(0);
        if
        :: journal[0] == J_COMMIT -> newest = 1
        :: else
        fi;
#endif
        tlow = journal_low;
        tentry = journal_low > 0 || journal[0] != J_NONE || journal[N - 1] != J_NONE;
#else
        restart_volatile(0);
#if N > 1
        restart_volatile(1);
#endif
        tkeeper++;
        memory[0] = 0;
        memory[1] = 0;
        newest = 0;
#endif
        tup = true
       }
    :: atomic { /* the initiator's process is killed, and a successor has its tokens */
        initiator_crashes < INITIATOR_CRASHES && FAULTY && ifirst ->
        initiator_crashes++;
        ifirst = false;
        ipair = false;
        initiator_crash(0)
#if N > 1
        ; initiator_crash(1)
#endif
       }
    :: atomic { /* the initiator gives the queue pair up */
        ipair && ((breaks < BREAKS && FAULTY) || !tpair) ->
        if
        :: tpair -> breaks++
        :: else
        fi;
        ipair = false;
        pair_fails(0)
#if N > 1
        ; pair_fails(1)
#endif
       }
    :: atomic { /* the target gives it up */
        tup && tpair && !ipair ->
        tpair = false;
        stream_dies(0)
#if N > 1
        ; stream_dies(1)
#endif
       }
    :: atomic { IS_LIVE && !faults_over -> faults_over = true }
    od
}

#define DONE_AT(n) \
    (((istate[n] == I_IDLE && !ipair) || ENDED(n)) && \
     (tstate[n] == T_NONE || tstate[n] >= T_COMMITTED))
#if N > 1
#define DONE (tup && DONE_AT(0) && DONE_AT(1))
#else
#define DONE (tup && DONE_AT(0))
#endif

#ifdef LIVE
ltl ends { <> [] DONE }

/* Time goes on though nothing happens: a run that is stuck is an endless one. */
active proctype Time() {
    do
    :: stream[0] <= STREAM_DEAD
    od
}
#else
active proctype Reader() {
end:
    atomic { !SNAPSHOT_OK -> assert(SNAPSHOT_OK) }
}
#endif

init {
    atomic {
        run Faults();
        run Initiator(0);
        run VerdictNetwork(0);
        run CommandNetwork(0);
        run Stream(0);
        run Target(0);
#if N > 1
        run Initiator(1);
        run VerdictNetwork(1);
        run CommandNetwork(1);
        run Stream(1);
        run Target(1)
#endif
    }
}
