// SPDX-License-Identifier: BSD-2-Clause
// What a target's program says to transactions before they are exposed: validators, and proposals as events.
#include "txn_ends.h"

#include "device/tests/cancelled.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct opinion {
    int asked;
    int answer;
    bool saw_bytes;
    pthread_t thread;
};

static int validate(const struct albdv_proposal *proposal)
{
    struct opinion *opinion = proposal->context;
    opinion->asked++;
    opinion->thread = pthread_self();
    opinion->saw_bytes = proposal->part_count == 1 && proposal->parts[0].length == BYTES &&
                         ((const uint8_t *)proposal->parts[0].bytes)[BYTES - 1] == 0x5a;
    return opinion->answer;
}

static void set_validator(void *fixture)
{
    static struct opinion opinion;
    assert_int_equal(albdv_set_validator(((struct fixture *)fixture)->mr, validate, &opinion), 0);
}

static void validator__of_a_cancelled_thread(void **state)
{
    struct fixture *f = *state;
    cancelled_call(set_validator, f);
    struct ibv_pd *pd = ibv_alloc_pd(f->context); // takes the context's lock
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(albdv_set_validator(f->mr, NULL, NULL), 0);
}

static void validator__decides(void **state)
{
    struct ends e;
    struct opinion opinion = {.answer = 1};
    set_up(&e, *state);
    assert_int_equal(albdv_set_validator(e.f->mr, validate, &opinion), 0);
    assert_int_equal(albdv_set_validator(e.f->mr, validate, &opinion), EBUSY);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    end(&e);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_int_equal(opinion.asked, 1);
    assert_true(opinion.saw_bytes);
    assert_false(pthread_equal(opinion.thread, pthread_self()));
    opinion.answer = 0;
    begin(&e, 2, ALBDV_COMMITTED, 0);
    add(&e, SECOND, BYTES);
    end(&e);
    expect(&e, 2, IBV_WC_REM_ABORT_ERR, ALBDV_REJECTED);
    assert_false(is_written(&e, SECOND));
    assert_int_equal(albdv_set_validator(e.f->mr, NULL, NULL), 0);
    begin(&e, 3, ALBDV_COMMITTED, 0);
    add(&e, SECOND, BYTES);
    end(&e);
    expect(&e, 3, IBV_WC_SUCCESS, ALBDV_OK);
    assert_int_equal(opinion.asked, 2);
    assert_int_equal(albdv_set_validator(NULL, validate, NULL), EINVAL);
    tear_down(&e);
}

struct closing {
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    int close_error, mr_error, qp_error;
    bool is_over; // set last, by the thread of validators
};

static int close_everything(const struct albdv_proposal *proposal)
{
    struct closing *closing = proposal->context;
    closing->close_error = ibv_close_device(closing->mr->context);
    closing->qp_error = ibv_destroy_qp(closing->qp);
    closing->mr_error = ibv_dereg_mr(closing->mr);
    __atomic_store_n(&closing->is_over, true, __ATOMIC_RELEASE);
    return 1;
}

// All but its own device: that would wait for the validator to return.
static void validator__may_end_what_it_is_asked_about(void **state)
{
    struct ends e;
    set_up(&e, *state);
    struct ibv_mr *mr =
        ibv_reg_mr(e.f->pd, e.f->memory + SECOND, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct closing closing = {.mr = mr, .qp = e.target};
    const struct ibv_sge sge = fixture_sge(e.f, SOURCE, BYTES);
    assert_int_equal(albdv_set_validator(mr, close_everything, &closing), 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    albdv_wr_txn_write(e.dv, mr->rkey, at(&e, SECOND));
    ibv_wr_set_sge_list(e.ex, 1, &sge);
    end(&e);
    while (!__atomic_load_n(&closing.is_over, __ATOMIC_ACQUIRE))
        usleep(1000);
    assert_int_equal(closing.close_error, EDEADLK);
    assert_int_equal(closing.qp_error, 0);
    assert_int_equal(closing.mr_error, 0);
    assert_false(is_written(&e, SECOND));
    assert_int_equal(ibv_destroy_qp(e.initiator), 0);
}

struct taking {
    struct ibv_mr *own, *other;
    int own_error, other_error;
};

static int take_away(const struct albdv_proposal *proposal)
{
    struct taking *taking = proposal->context;
    taking->own_error = albdv_set_validator(taking->own, NULL, NULL);
    taking->other_error = albdv_set_validator(taking->other, NULL, NULL);
    return 1;
}

// Its own it would have to wait for; others do not run meanwhile.
static void validator__takes_another_away(void **state)
{
    struct ends e;
    struct opinion opinion = {.answer = 0};
    set_up(&e, *state);
    struct ibv_mr *other =
        ibv_reg_mr(e.f->pd, e.f->memory + SECOND, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct taking taking = {.own = e.f->mr, .other = other};
    const struct ibv_sge sge = fixture_sge(e.f, SOURCE, BYTES);
    assert_int_equal(albdv_set_validator(e.f->mr, take_away, &taking), 0);
    assert_int_equal(albdv_set_validator(other, validate, &opinion), 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    end(&e);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_int_equal(taking.own_error, EDEADLK);
    assert_int_equal(taking.other_error, 0);
    begin(&e, 2, ALBDV_COMMITTED, 0);
    albdv_wr_txn_write(e.dv, other->rkey, at(&e, SECOND));
    ibv_wr_set_sge_list(e.ex, 1, &sge);
    end(&e);
    expect(&e, 2, IBV_WC_SUCCESS, ALBDV_OK);
    assert_int_equal(opinion.asked, 0);
    assert_int_equal(albdv_set_validator(e.f->mr, NULL, NULL), 0);
    assert_int_equal(ibv_dereg_mr(other), 0);
    tear_down(&e);
}

// The validator asked last counts as much as the one asked first.
static void validators_of_two_regions__both_decide(void **state)
{
    struct ends e;
    struct opinion first = {.answer = 1}, second = {.answer = 0};
    set_up(&e, *state);
    struct ibv_mr *other =
        ibv_reg_mr(e.f->pd, e.f->memory + SECOND, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(other);
    assert_int_equal(albdv_set_validator(e.f->mr, validate, &first), 0);
    assert_int_equal(albdv_set_validator(other, validate, &second), 0);
    const struct ibv_sge sge = fixture_sge(e.f, SOURCE, BYTES);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    albdv_wr_txn_write(e.dv, other->rkey, at(&e, SECOND));
    ibv_wr_set_sge_list(e.ex, 1, &sge);
    end(&e);
    expect(&e, 1, IBV_WC_REM_ABORT_ERR, ALBDV_REJECTED);
    assert_int_equal(first.asked, 1);
    assert_int_equal(second.asked, 1);
    assert_false(is_written(&e, TARGET));
    assert_int_equal(ibv_dereg_mr(other), 0);
    tear_down(&e);
}

static void proposals__as_events(void **state)
{
    struct ends e;
    set_up(&e, *state);
    struct albdv_proposal_channel *channel = albdv_create_proposal_channel(e.f->context);
    assert_non_null(channel);
    assert_int_equal(albdv_set_proposal_channel(e.f->mr, channel, &e), 0);
    assert_int_equal(albdv_set_validator(e.f->mr, validate, NULL), EBUSY);
    assert_int_equal(albdv_set_validator(e.f->mr, NULL, NULL), EBUSY);
    assert_int_equal(albdv_destroy_proposal_channel(channel), EBUSY);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    end(&e);
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 20000), 1);
    struct albdv_proposal *proposal = albdv_get_proposal(channel);
    assert_non_null(proposal);
    assert_ptr_equal(proposal->context, &e);
    assert_int_equal(proposal->part_count, 1);
    assert_ptr_equal(proposal->parts[0].address, e.f->memory + TARGET);
    assert_false(is_written(&e, TARGET));
    assert_int_equal(albdv_answer_proposal(proposal, 1), 0);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    begin(&e, 2, ALBDV_COMMITTED, 0);
    add(&e, SECOND, BYTES);
    albdv_wr_txn_deadline(e.dv, WHILE_NS);
    end(&e);
    proposal = albdv_get_proposal(channel);
    expect(&e, 2, IBV_WC_REM_ABORT_ERR, ALBDV_DEADLINE);
    assert_int_equal(((const uint8_t *)proposal->parts[0].bytes)[7], 0x5a); // may still be looked at
    assert_int_equal(albdv_answer_proposal(proposal, 1), ENOENT);
    assert_false(is_written(&e, SECOND));
    begin(&e, 3, ALBDV_COMMITTED, 0); // it is not taken
    add(&e, SECOND, BYTES);
    end(&e);
    assert_int_equal(poll(&fd, 1, 20000), 1);
    assert_int_equal(albdv_set_proposal_channel(e.f->mr, NULL, NULL), 0);
    expect(&e, 3, IBV_WC_REM_ABORT_ERR, ALBDV_REJECTED);
    assert_int_equal(albdv_destroy_proposal_channel(channel), 0);
    tear_down(&e);
}

// What a transaction writes nothing with is shown, too: it is nowhere, so that its key need not be one.
static void proposals__name_regions_and_have_empty_parts(void **state)
{
    struct ends e;
    set_up(&e, *state);
    struct albdv_proposal_channel *channel = albdv_create_proposal_channel(e.f->context);
    struct ibv_mr *other =
        ibv_reg_mr(e.f->pd, e.f->memory + SECOND, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    const struct ibv_sge sge = fixture_sge(e.f, SOURCE, BYTES);
    assert_int_equal(albdv_set_proposal_channel(e.f->mr, channel, NULL), 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, 0);
    add(&e, TARGET, BYTES);
    albdv_wr_txn_write(e.dv, 0, 0);
    ibv_wr_set_sge_list(e.ex, 0, NULL);
    albdv_wr_txn_write(e.dv, other->rkey, at(&e, SECOND));
    ibv_wr_set_sge_list(e.ex, 1, &sge);
    end(&e);
    struct albdv_proposal *proposal = albdv_get_proposal(channel);
    assert_int_equal(proposal->part_count, 4);
    assert_true(proposal->parts[0].length == 0 && proposal->parts[2].length == 0);
    assert_null(proposal->parts[0].mr);
    assert_ptr_equal(proposal->parts[1].mr, e.f->mr);
    assert_null(proposal->parts[2].mr);
    assert_ptr_equal(proposal->parts[3].mr, other);
    assert_int_equal(albdv_answer_proposal(proposal, 1), 0);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_true(is_written(&e, TARGET) && is_written(&e, SECOND));
    assert_int_equal(ibv_dereg_mr(other), 0);
    assert_int_equal(albdv_set_proposal_channel(e.f->mr, NULL, NULL), 0);
    assert_int_equal(albdv_destroy_proposal_channel(channel), 0);
    tear_down(&e);
}

// Its channel stays as long as a proposal from it is held.
static void channel__is_busy_until_the_answer(void **state)
{
    struct ends e;
    set_up(&e, *state);
    struct albdv_proposal_channel *channel = albdv_create_proposal_channel(e.f->context);
    assert_int_equal(albdv_set_proposal_channel(e.f->mr, channel, NULL), 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    end(&e);
    struct albdv_proposal *proposal = albdv_get_proposal(channel);
    assert_non_null(proposal);
    assert_int_equal(albdv_set_proposal_channel(e.f->mr, NULL, NULL), 0);
    assert_int_equal(albdv_destroy_proposal_channel(channel), EBUSY);
    assert_int_equal(albdv_answer_proposal(proposal, 1), 0);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_int_equal(albdv_destroy_proposal_channel(channel), 0);
    tear_down(&e);
}

// The region goes while its proposal is looked at; the bytes stay until the answer.
static void proposals__outlive_their_region(void **state)
{
    struct ends e;
    set_up(&e, *state);
    struct albdv_proposal_channel *channel = albdv_create_proposal_channel(e.f->context);
    struct ibv_mr *mr =
        ibv_reg_mr(e.f->pd, e.f->memory + SECOND, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    const struct ibv_sge sge = fixture_sge(e.f, SOURCE, BYTES);
    assert_int_equal(albdv_set_proposal_channel(mr, channel, NULL), 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    albdv_wr_txn_write(e.dv, mr->rkey, at(&e, SECOND));
    ibv_wr_set_sge_list(e.ex, 1, &sge);
    end(&e);
    struct albdv_proposal *proposal = albdv_get_proposal(channel);
    assert_non_null(proposal);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    expect(&e, 1, IBV_WC_REM_ABORT_ERR, ALBDV_REGION_GONE);
    assert_int_equal(((const uint8_t *)proposal->parts[0].bytes)[9], 0x5a);
    assert_int_equal(albdv_answer_proposal(proposal, 1), ENOENT);
    assert_int_equal(albdv_destroy_proposal_channel(channel), 0);
    tear_down(&e);
}

// A program that closes everything without having answered.
static void proposals__are_left_behind(void **state)
{
    struct fixture *f;
    struct ends e;
    void *own = NULL;
    (void)state;
    assert_int_equal(fixture_setup(&own), 0);
    f = own;
    set_up(&e, f);
    struct albdv_proposal_channel *channel = albdv_create_proposal_channel(f->context);
    assert_int_equal(albdv_set_proposal_channel(f->mr, channel, NULL), 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    end(&e);
    assert_non_null(albdv_get_proposal(channel));
    assert_int_equal(ibv_close_device(f->context), 0);
    free(f->memory);
    free(f);
}

static void fork__child_has_no_say(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow a child of a process with threads
#endif
    const struct fixture *f = *state;
    int status;
    assert_true(albdv_is_supported()); // it is looked up, once, where allocating is allowed
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        errno = 0;
        bool is_told = !albdv_create_proposal_channel(f->context) && errno == ENODEV &&
                       albdv_set_validator(f->mr, validate, NULL) == ENODEV &&
                       albdv_set_validator(f->mr, NULL, NULL) == ENODEV &&
                       albdv_set_proposal_channel(f->mr, NULL, NULL) == ENODEV;
        _exit(is_told ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void not_on_roce0(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(albdv_set_validator(f->mr, validate, NULL), EOPNOTSUPP);
    struct albdv_proposal_channel none = {.context = f->context, .fd = -1}; // what cannot be made
    assert_null(albdv_create_proposal_channel(f->context));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(albdv_set_proposal_channel(f->mr, &none, NULL), EOPNOTSUPP);
    assert_int_equal(albdv_set_proposal_channel(f->mr, NULL, NULL), EOPNOTSUPP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(validator__decides),
        FIXTURE_TEST(validator__of_a_cancelled_thread),
        FIXTURE_TEST(validator__may_end_what_it_is_asked_about),
        FIXTURE_TEST(validator__takes_another_away),
        FIXTURE_TEST(validators_of_two_regions__both_decide),
        FIXTURE_TEST(proposals__as_events),
        FIXTURE_TEST(proposals__outlive_their_region),
        FIXTURE_TEST(proposals__name_regions_and_have_empty_parts),
        FIXTURE_TEST(channel__is_busy_until_the_answer),
        FIXTURE_TEST(fork__child_has_no_say),
        cmocka_unit_test(proposals__are_left_behind),
    };
    const struct CMUnitTest roce_tests[] = {FIXTURE_TEST(not_on_roce0)};
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    int failed = cmocka_run_group_tests_name("proposal albedo0", tests, NULL, NULL);
    setenv("ALBEDO_DEVICES", "roce0", 1);
    return failed + cmocka_run_group_tests_name("proposal roce0", roce_tests, NULL, NULL);
}
