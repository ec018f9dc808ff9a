// SPDX-License-Identifier: BSD-2-Clause
#include "device/rouse.h"

#include "device/cancel.h"
#include "device/drive.h"

// So many rounds, each within that time of the one before, show that a program asks until there is no event, and that
// it lives by events. Who has few would be woken for acknowledgements, too, and gain little: when a message comes for
// him, the device thread sleeps on the sockets as well.
#define ROUNDS_ENOUGH 16
#define ROUND_MAX_NS  (10 * ALB_NS_PER_MS)
#define IDLE_NS       (10 * ROUND_MAX_NS)

// One that comes by so often without getting an event is woken for somebody else. UCX comes by a dozen times for each
// when it moves much.
#define VAIN_MAX       512
#define VAIN_FOR_EVENT 32u

void alb_rouse_init(struct alb_rouse *rouse)
{
    *rouse = (struct alb_rouse){.fd = -1, .refused_fd = -1};
    pthread_mutex_init(&rouse->lock, NULL);
}

void alb_rouse_fini(struct alb_rouse *rouse)
{
    pthread_mutex_destroy(&rouse->lock);
}

static enum alb_rouse_step begin_anew(struct alb_rouse *rouse, int fd)
{
    enum alb_rouse_step step = rouse->is_on ? ALB_ROUSE_END : ALB_ROUSE_NOTHING;
    rouse->fd = fd;
    rouse->rounds = rouse->vain = 0;
    rouse->is_on = false;
    return step;
}

static void note_round(struct alb_rouse *rouse, alb_time now)
{
    bool is_close = now - ALB_MIN(rouse->round_at, now) <= ROUND_MAX_NS;
    rouse->rounds = is_close ? rouse->rounds + 1 : 0;
    rouse->round_at = now;
    rouse->vain -= ALB_MIN(rouse->vain, VAIN_FOR_EVENT);
}

enum alb_rouse_step alb_rouse_note(struct alb_rouse *rouse, int fd, bool had_one, alb_time now)
{
    if (fd != rouse->fd && !had_one)
        return ALB_ROUSE_NOTHING;
    if (had_one)
        note_round(rouse, now);
    if (fd != rouse->fd)
        return begin_anew(rouse, fd);
    if (!had_one && ++rouse->vain > VAIN_MAX)
        return begin_anew(rouse, fd);
    if (rouse->is_on)
        return ALB_ROUSE_LOOK;
    if (rouse->rounds < ROUNDS_ENOUGH || fd == rouse->refused_fd || now < rouse->barred_until)
        return ALB_ROUSE_NOTHING;
    rouse->is_on = true;
    return ALB_ROUSE_BEGIN;
}

// [lock]
static bool begin(struct alb_device *device, int fd)
{
    alb_token_lock(&device->token);
    int error = alb_port_rouse(&device->port, fd);
    alb_drive_release(device);
    if (error) {
        begin_anew(&device->rouse, fd);
        device->rouse.refused_fd = fd;
    }
    return error == 0;
}

// [lock]
static void end(struct alb_device *device)
{
    alb_token_lock(&device->token);
    alb_port_rouse_end(&device->port);
    alb_drive_release(device);
    atomic_store(&device->rouse.came_at, 0);
    alb_drive_leave_to_thread(device);
}

// [lock] True if the program is the one that is roused.
static bool take_step(struct alb_device *device, int fd, bool had_one, alb_time now)
{
    switch (alb_rouse_note(&device->rouse, fd, had_one, now)) {
    case ALB_ROUSE_BEGIN:
        return begin(device, fd);
    case ALB_ROUSE_END:
        end(device);
        return false;
    case ALB_ROUSE_LOOK:
        return true;
    case ALB_ROUSE_NOTHING:
        break;
    }
    return false;
}

// Who has had an event since it was told that there is none asks for another one, and is owed none.
static enum alb_roused look(struct alb_device *device, bool had_one)
{
    if (!had_one && !alb_drive_look(device))
        return ALB_ROUSED_STIRRED;
    bool is_stirred = atomic_exchange(&device->rouse.stirred, false);
    return is_stirred && !had_one ? ALB_ROUSED_STIRRED : ALB_ROUSED_QUIET;
}

enum alb_roused alb_device_ask(struct alb_device *device, int fd, bool had_one)
{
    struct alb_rouse *rouse = &device->rouse;
    int cancel = alb_cancel_off();
    pthread_mutex_lock(&rouse->lock);
    alb_time now = alb_clock_now();
    bool is_roused = take_step(device, fd, had_one, now);
    if (is_roused) {
        atomic_store(&rouse->came_at, now);
        atomic_store_explicit(&device->awaited_at, now, memory_order_relaxed);
    }
    pthread_mutex_unlock(&rouse->lock);
    enum alb_roused roused = is_roused ? look(device, had_one) : ALB_ROUSED_NOT;
    alb_cancel_back(cancel);
    return roused;
}

// [lock]
static void stop(struct alb_device *device, int fd)
{
    if (begin_anew(&device->rouse, fd) == ALB_ROUSE_END)
        end(device);
}

void alb_device_forget_file(struct alb_device *device, int fd)
{
    struct alb_rouse *rouse = &device->rouse;
    int cancel = alb_cancel_off();
    pthread_mutex_lock(&rouse->lock);
    if (rouse->fd == fd)
        stop(device, -1);
    if (rouse->refused_fd == fd)
        rouse->refused_fd = -1;
    pthread_mutex_unlock(&rouse->lock);
    alb_cancel_back(cancel);
}

// A thread that was interrupted by the handler of a signal that ends the process may have the lock.
void alb_rouse_review(struct alb_device *device, alb_time now)
{
    struct alb_rouse *rouse = &device->rouse;
    alb_time came_at = atomic_load(&rouse->came_at);
    if (came_at == 0 || now - ALB_MIN(came_at, now) < IDLE_NS || pthread_mutex_trylock(&rouse->lock) != 0)
        return;
    if (atomic_load(&rouse->came_at) == came_at)
        stop(device, rouse->fd);
    pthread_mutex_unlock(&rouse->lock);
}

void alb_rouse_bar(struct alb_device *device, alb_time now)
{
    struct alb_rouse *rouse = &device->rouse;
    int cancel = alb_cancel_off();
    pthread_mutex_lock(&rouse->lock);
    rouse->barred_until = now + IDLE_NS;
    stop(device, rouse->fd);
    pthread_mutex_unlock(&rouse->lock);
    alb_cancel_back(cancel);
}
