// SPDX-License-Identifier: BSD-2-Clause
// ibv_open_device(3), ibv_close_device: a context is a reference to the process's device, the tables that inline verbs
// jump through, and the books of what the program created.
#include "base/log.h"
#include "device/cancel.h"
#include "plugins/verbs/proposal.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

uint32_t alb_door_remember(struct alb_door_context *context, enum alb_door_kind kind, struct alb_list *link)
{
    pthread_mutex_lock(&context->verbs.context.mutex);
    alb_list_push_back(&context->objects[kind], link);
    pthread_mutex_unlock(&context->verbs.context.mutex);
    return atomic_fetch_add(&context->next_handle, 1);
}

void alb_door_forget(struct alb_door_context *context, struct alb_list *link)
{
    pthread_mutex_lock(&context->verbs.context.mutex);
    alb_list_remove(link);
    pthread_mutex_unlock(&context->verbs.context.mutex);
}

int alb_door_lock(struct alb_door_context *context)
{
    if (alb_door_is_forked(context))
        return ENODEV;
    alb_device_lock(context->device);
    return 0;
}

void alb_door_unlock(struct alb_door_context *context)
{
    alb_device_unlock(context->device);
}

// The last of so many first. One that the caller kept before stays with it.
static void give_first(const struct alb_door_locks *locks, uint32_t count)
{
    for (; count > 0; count--)
        if (!alb_spinlock_is_kept(locks->of[count - 1]))
            alb_spinlock_give(locks->of[count - 1]);
}

// The first of them that is taken by another thread; NULL: all are ours.
static const struct alb_spinlock *try_all(const struct alb_door_locks *locks)
{
    for (uint32_t i = 0; i < locks->count; i++) {
        if (alb_spinlock_is_kept(locks->of[i]) || alb_spinlock_try(locks->of[i]))
            continue;
        give_first(locks, i);
        return locks->of[i];
    }
    return NULL;
}

void alb_door_lock_with(struct alb_door_context *context, const struct alb_door_locks *locks)
{
    for (;;) {
        alb_device_lock(context->device);
        const struct alb_spinlock *taken = try_all(locks);
        if (!taken)
            return;
        alb_device_unlock(context->device);
        alb_spinlock_wait(taken);
    }
}

void alb_door_unlock_with(struct alb_door_context *context, const struct alb_door_locks *locks)
{
    give_first(locks, locks->count);
    alb_device_unlock(context->device);
}

// Programs pass the descriptor on or duplicate it; there is no kernel device behind it, nor a file that may be missing.
static int open_command_fd(void)
{
    return eventfd(0, EFD_CLOEXEC);
}

static void fill_tables(struct alb_door_context *context)
{
    struct verbs_context *verbs = &context->verbs;
    verbs->sz = sizeof(*verbs);
    verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    alb_door_fill_query(verbs);
    alb_door_fill_pd(verbs);
    alb_door_fill_mw(verbs);
    alb_door_fill_cq(verbs);
    alb_door_fill_cq_ex(verbs);
    alb_door_fill_srq(verbs);
    alb_door_fill_qp(verbs);
    alb_door_fill_post(verbs);
    alb_door_fill_xrc(verbs);
}

static void complain(const char *name, const char *why)
{
    alb_log(ALB_LOG_ERROR, "cannot open %s: %s", name, why);
}

static int open_with(struct alb_door_context *context, const char *name, struct alb_device_options *options)
{
    char why[ALB_DEVICE_ERROR_MAX] = "";
    int error = alb_device_options_from_environment(options, why, sizeof(why));
    if (!error)
        error = alb_device_open(name, options, &context->device);
    if (error) {
        complain(name, why[0] ? why : strerror(error));
        return error;
    }
    alb_device_set_event_handler(context->device, alb_door_on_event, context->device);
    alb_device_set_port_handler(context->device, alb_door_on_port, context->device);
    context->engine = alb_device_engine(context->device);
    context->level = (enum alb_level)options->completions;
    context->limits = alb_engine_configuration(context->engine);
    return 0;
}

// The options are some 13 KiB, too many for the stack of a program's thread.
static int open_engine(struct alb_door_context *context, const char *name)
{
    struct alb_device_options *options = malloc(sizeof(*options));
    int error = options ? open_with(context, name, options) : ENOMEM;
    free(options);
    return error;
}

static struct ibv_context *open_context(struct ibv_device *device)
{
    struct alb_door_context *context = calloc(1, sizeof(*context));
    if (!context)
        return alb_door_fail(ENOMEM);

    int error = alb_notices_init(&context->async, NULL);
    if (error) {
        complain(device->name, strerror(error));
        goto fail_context;
    }
    alb_door_port_notices_init(context);
    struct ibv_context *outer = &context->verbs.context;
    outer->device = device;
    outer->async_fd = context->async.file.fd;
    outer->cmd_fd = open_command_fd();
    if (outer->cmd_fd < 0) {
        error = errno;
        complain(device->name, strerror(error));
        goto fail_async;
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    outer->num_comp_vectors = processors > 0 ? (int)processors : 1;
    pthread_mutex_init(&outer->mutex, NULL);
    for (int kind = 0; kind < ALB_DOOR_KINDS; kind++)
        alb_list_init(&context->objects[kind]);
    error = open_engine(context, device->name);
    if (error)
        goto fail_fd;
    fill_tables(context);
    alb_door_fork_add(context);
    return outer;

fail_fd:
    close(outer->cmd_fd);
    pthread_mutex_destroy(&outer->mutex);
fail_async:
    alb_notices_fini(&context->async);
fail_context:
    free(context);
    return alb_door_fail(error);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    if (!device)
        return alb_door_fail(EINVAL);
    int cancel = alb_cancel_off();
    struct ibv_context *outer = open_context(device);
    alb_cancel_back(cancel);
    return outer;
}

// The objects that a program leaves behind end with its context, as they do with the kernel. Events that it has taken
// and not acknowledged do not hold this up.
static void destroy_leftovers(struct alb_door_context *context)
{
    for (int kind = 0; kind < ALB_DOOR_KINDS; kind++)
        while (!alb_list_is_empty(&context->objects[kind])) {
            int error = alb_door_release(kind, context->objects[kind].next);
            alb_assert(error == 0); // what could keep it has been destroyed before it
        }
}

// A thread may be blocked in ibv_get_async_event for ever (NCCL leaves one). It stays so, and the context's memory is
// left to it.
static void close_context(struct alb_door_context *context)
{
    alb_door_fork_remove(context);
    destroy_leftovers(context);
    alb_door_validators_stop(context);
    alb_door_proposals_end(context);
    alb_device_close(context->device);
    close(context->verbs.context.cmd_fd);
    if (alb_notices_fini(&context->async)) {
        pthread_mutex_destroy(&context->verbs.context.mutex);
        free(context);
    }
}

// A forked child has copies of the descriptors; it may close its context twice.
static void let_go(struct alb_door_context *context)
{
    struct ibv_context *outer = &context->verbs.context;
    if (outer->cmd_fd < 0)
        return;
    close(outer->cmd_fd);
    alb_event_file_close(&context->async.file);
    outer->cmd_fd = outer->async_fd = -1;
}

int ibv_close_device(struct ibv_context *outer)
{
    if (!outer)
        return alb_door_refuse(EINVAL);
    struct alb_door_context *context = alb_door_context(outer);
    if (alb_door_is_forked(context)) {
        let_go(context);
        return 0;
    }
    if (alb_door_is_validating(context)) // its thread would wait for itself
        return alb_door_refuse(EDEADLK);
    int cancel = alb_cancel_off();
    close_context(context);
    alb_cancel_back(cancel);
    return 0;
}
