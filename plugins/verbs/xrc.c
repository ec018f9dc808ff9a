// SPDX-License-Identifier: BSD-2-Clause
// ibv_open_xrcd(3), and ibv_open_qp(3) with what it needs: a receiving queue pair that several handles stand for.
//
// A domain lives in one process. All of its handles that were opened with one file are one domain, whichever context
// they belong to. Another process that opens the same file has a domain of its own: the device is in the process.
#include "device/cancel.h"
#include "device/descriptor.h"
#include "plugins/verbs/door.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- domains --------------------------------------------------------------------------------------------------------

// What the handles of one domain share. Under domains_lock.
struct alb_door_domain {
    struct alb_list link; // among the domains of the process
    struct alb_xrcd *engine_xrcd;
    struct alb_engine *engine;
    int file; // by which others can open it; held, so that no other file gets its inode's number; -1: none
    dev_t device;
    ino_t inode;
    uint32_t handles;
    struct alb_list targets; // under the driver token
};

static pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;
static struct alb_list domains = {&domains, &domains};

void alb_door_domains_after_fork(void)
{
    alb_list_init(&domains);
    pthread_mutex_init(&domains_lock, NULL);
}

// Files are opened and closed meanwhile. Returns what unlocking needs.
static int lock_domains(void)
{
    int cancel = alb_cancel_off();
    pthread_mutex_lock(&domains_lock);
    return cancel;
}

static void unlock_domains(int cancel)
{
    pthread_mutex_unlock(&domains_lock);
    alb_cancel_back(cancel);
}

static struct alb_door_domain *find_domain(const struct alb_engine *engine, const struct stat *file)
{
    ALB_LIST_FOR_EACH (&domains, node) {
        struct alb_door_domain *domain = ALB_LIST_ENTRY(node, struct alb_door_domain, link);
        if (domain->engine == engine && domain->file >= 0 && domain->device == file->st_dev &&
            domain->inode == file->st_ino)
            return domain;
    }
    return NULL;
}

// A descriptor of the same file, or -1 with errno. Not a copy, unless there is no /proc: that would keep the program's
// locks when the program closes its own (flock(2)), and drop others when it is closed itself (fcntl(2)).
static int hold_file(int fd)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0)
        file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return alb_descriptor_aside(file);
}

static int open_file(struct alb_door_domain *domain, int fd)
{
    struct stat file;
    domain->file = hold_file(fd);
    if (domain->file < 0 || fstat(domain->file, &file) != 0)
        return errno;
    domain->device = file.st_dev;
    domain->inode = file.st_ino;
    return 0;
}

static void free_domain(struct alb_door_domain *domain)
{
    if (domain->file >= 0)
        close(domain->file);
    free(domain);
}

// fd is -1 for a domain that cannot be shared.
static int create_domain(struct alb_door_context *context, int fd, struct alb_door_domain **out)
{
    struct alb_door_domain *domain = calloc(1, sizeof(*domain));
    if (!domain)
        return ENOMEM;
    domain->file = -1;
    int error = fd == -1 ? 0 : open_file(domain, fd);
    if (!error)
        error = alb_door_lock(context);
    if (!error) {
        error = alb_xrcd_create(context->engine, &domain->engine_xrcd);
        alb_door_unlock(context);
    }
    if (error) {
        free_domain(domain);
        return error;
    }
    domain->engine = context->engine;
    alb_list_init(&domain->targets);
    alb_list_push_back(&domains, &domain->link);
    *out = domain;
    return 0;
}

// The domain behind a descriptor. As the kernel has it, EAGAIN: there is none yet, and O_CREAT is not among oflags;
// EINVAL: there is one, and O_EXCL is.
static int open_domain(struct alb_door_context *context, int fd, int oflags, struct alb_door_domain **domain)
{
    struct stat file;
    if (fd == -1)
        return create_domain(context, -1, domain);
    if (fstat(fd, &file) != 0)
        return errno;
    *domain = find_domain(context->engine, &file);
    if (*domain)
        return oflags & O_EXCL ? EINVAL : 0;
    return oflags & O_CREAT ? create_domain(context, fd, domain) : EAGAIN;
}

static void close_domain(struct alb_door_context *context, struct alb_door_domain *domain)
{
    int cancel = lock_domains();
    if (--domain->handles == 0) {
        alb_device_lock(context->device);
        int error = alb_xrcd_destroy(domain->engine_xrcd);
        alb_door_unlock(context);
        alb_assert(error == 0); // what belongs to it keeps a handle
        alb_list_remove(&domain->link);
        free_domain(domain);
    }
    unlock_domains(cancel);
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *outer, struct ibv_xrcd_init_attr *init)
{
    const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    if (!init || (init->comp_mask & needed) != needed)
        return alb_door_fail(EINVAL);
    if (init->comp_mask & ~needed || init->oflags & ~(O_CREAT | O_EXCL))
        return alb_door_fail(EOPNOTSUPP);
    struct alb_door_context *context = alb_door_context(outer);
    if (alb_door_is_forked(context))
        return alb_door_fail(ENODEV);
    struct alb_door_xrcd *xrcd = calloc(1, sizeof(*xrcd));
    if (!xrcd)
        return alb_door_fail(ENOMEM);
    int cancel = lock_domains();
    int error = open_domain(context, init->fd, init->oflags, &xrcd->domain);
    if (!error)
        xrcd->domain->handles++;
    unlock_domains(cancel);
    if (error) {
        free(xrcd);
        return alb_door_fail(error);
    }
    xrcd->xrcd.context = outer;
    alb_door_remember(context, ALB_DOOR_XRCD, &xrcd->link);
    return &xrcd->xrcd;
}

int alb_door_xrcd_release(struct alb_door_xrcd *xrcd)
{
    struct alb_door_context *context = alb_door_context(xrcd->xrcd.context);
    if (alb_door_is_forked(context))
        return 0;
    close_domain(context, xrcd->domain);
    alb_door_forget(context, &xrcd->link);
    free(xrcd);
    return 0;
}

static int close_xrcd(struct ibv_xrcd *outer)
{
    struct alb_door_xrcd *xrcd = alb_door_xrcd(outer);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    return atomic_load(&xrcd->refs) > 0 ? alb_door_refuse(EBUSY) : alb_door_xrcd_release(xrcd);
}

struct alb_xrcd *alb_door_engine_xrcd(struct ibv_xrcd *xrcd)
{
    return alb_door_xrcd(xrcd)->domain->engine_xrcd;
}

// ---- receiving queue pairs and their handles ------------------------------------------------------------------------

// One queue pair of the engine. Under the driver token.
struct alb_door_target {
    struct alb_list link; // among those of its domain
    struct alb_qp *engine_qp;
    struct alb_list handles; // struct alb_door_qp
};

static void join(struct alb_door_qp *qp, struct alb_door_target *target)
{
    qp->target = target;
    qp->engine_qp = target->engine_qp;
    alb_list_push_back(&target->handles, &qp->of_target);
    atomic_fetch_add(&alb_door_xrcd(qp->xrcd)->refs, 1);
}

int alb_door_target_create(struct alb_door_qp *qp, struct alb_qp_init *init)
{
    struct alb_door_target *target = calloc(1, sizeof(*target));
    if (!target)
        return ENOMEM;
    init->user = target;
    init->xrcd = alb_door_engine_xrcd(qp->xrcd);
    int error = alb_qp_create(NULL, init, &target->engine_qp);
    if (error) {
        free(target);
        return error;
    }
    alb_list_init(&target->handles);
    alb_list_push_back(&alb_door_xrcd(qp->xrcd)->domain->targets, &target->link);
    join(qp, target);
    return 0;
}

bool alb_door_target_is_shared(const struct alb_door_qp *qp)
{
    return qp->target && qp->target->handles.next->next != &qp->target->handles;
}

void alb_door_target_leave(struct alb_door_qp *qp)
{
    struct alb_door_target *target = qp->target;
    alb_list_remove(&qp->of_target);
    atomic_fetch_sub(&alb_door_xrcd(qp->xrcd)->refs, 1);
    if (!alb_list_is_empty(&target->handles))
        return;
    int error = alb_qp_destroy(target->engine_qp);
    alb_assert(error == 0);
    alb_list_remove(&target->link);
    free(target);
}

// Every handle hears of it.
void alb_door_target_raise(struct alb_door_target *target, void (*raise)(struct alb_door_qp *, enum ibv_event_type),
                           enum ibv_event_type type)
{
    ALB_LIST_FOR_EACH (&target->handles, node)
        raise(ALB_LIST_ENTRY(node, struct alb_door_qp, of_target), type);
}

// Joins the queue pair of that number in the domain of qp->xrcd. EINVAL: there is none.
int alb_door_target_open(struct alb_door_qp *qp, uint32_t number)
{
    ALB_LIST_FOR_EACH (&alb_door_xrcd(qp->xrcd)->domain->targets, node) {
        struct alb_door_target *target = ALB_LIST_ENTRY(node, struct alb_door_target, link);
        if (alb_qp_number(target->engine_qp) != number)
            continue;
        join(qp, target);
        return 0;
    }
    return EINVAL;
}

void alb_door_fill_xrc(struct verbs_context *verbs)
{
    verbs->open_xrcd = open_xrcd;
    verbs->close_xrcd = close_xrcd;
}
