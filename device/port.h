// SPDX-License-Identifier: BSD-2-Clause
// A process's place in the network: its slot, the sockets of that slot, port 4791 besides if it holds that for the
// host, and the one epoll instance that tells which of them have something. It knows no engine, so that several can
// share it.
#pragma once

#include "device/device.h"
#include "device/groups.h"
#include "device/links.h"
#include "device/path_sockets.h"
#include "device/slot.h"

#include <stdatomic.h>
#include <sys/types.h>

// Which file it is that has a number.
struct alb_port_file {
    dev_t device;
    ino_t inode; // 0: it could not be told
};

struct alb_port {
    struct alb_addr addresses[ALB_DEVICE_ADDRESSES_MAX];
    uint32_t address_count;
    uint8_t slot;
    bool has_front; // the sockets of front are open
    struct alb_socket own[ALB_DEVICE_ADDRESSES_MAX];
    int marks[ALB_DEVICE_ADDRESSES_MAX];               // of our slot (device/slot_mark.h); -1: none
    struct alb_socket front[ALB_DEVICE_ADDRESSES_MAX]; // port 4791, taken over from a process of slot 0 that is gone
    struct alb_path_sockets paths;
    struct alb_groups groups;  // multicast groups that are received
    struct alb_socket carrier; // what ::1 sends to groups goes by it; fd -1: it has no address
    struct alb_socket *hot;    // the one that had something last
    uint32_t hot_times;        // in a row
    uint32_t looks;            // at the hot socket alone, since all of them were looked at
    alb_time looked_at;        // all of them, last time
    alb_time read_at;          // any of them, last time
    bool is_behind;            // nobody had looked for a while, and they have not been read out since
    // The one that the epoll instance does not watch, or NULL. Changed with the token; read by who sleeps, too.
    struct alb_socket *_Atomic unwatched;
    struct alb_links links;
    int epoll_fd;
    int rouses_fd;                            // an epoll instance of the program's that watches ours, or -1
    int wake_fd;                              // eventfd that ends alb_port_sleep and alb_port_nap
    atomic_bool is_closed;                    // by the program, which has been said
    struct alb_port_file wake_file, own_file; // wake_fd and the first of own, when they were opened
};

// Errors: those of alb_slot_claim, EMFILE and the like.
int alb_port_open(struct alb_port *port, const struct alb_addr *addresses, uint32_t count);
void alb_port_close(struct alb_port *port);

// What a sleep ended with.
struct alb_port_news {
    bool is_known;      // else the rest says nothing
    alb_time looked_at; // then or later
    bool of_links;
    bool of_watched; // sockets, those of the epoll instance
    bool of_unwatched;
    const struct alb_socket *unwatched;
};

// Which sockets may have something to receive, without waiting. Returns how many were stored. By news of a sleep that
// has just ended no system call is needed to know; NULL: there was none.
uint32_t alb_port_ready(struct alb_port *port, const struct alb_port_news *news, struct alb_socket *ready[],
                        uint32_t capacity);
// A socket had something.
void alb_port_note_found(struct alb_port *port, struct alb_socket *sock);

// From now on fd, an epoll instance, is readable while a socket has something. Errors: EBUSY (it already rouses
// another), those of epoll_ctl(2).
int alb_port_rouse(struct alb_port *port, int fd);
void alb_port_rouse_end(struct alb_port *port);

// Waits until a socket has something, alb_port_wake is called, or the time has come; with for_links also until there is
// news of them.
struct alb_port_news alb_port_sleep(struct alb_port *port, alb_time until, bool for_links);
// Waits until alb_port_wake is called or the time has come.
void alb_port_nap(struct alb_port *port, alb_time until);
// [any thread]
void alb_port_wake(struct alb_port *port);
// False: the program has closed its descriptors. It may have other files by their numbers.
bool alb_port_is_open(const struct alb_port *port);

// The socket that sends from a local address by a path; *is_own_path: else it is path 0's, since that path has none.
// NULL: no such address.
struct alb_socket *alb_port_path_socket(struct alb_port *port, const struct alb_addr *local, uint16_t path,
                                        bool *is_own_path, alb_time now);

// Tells which interfaces carry the addresses, for multicast: ifindexes stand as the addresses do. Errors: those of
// alb_carrier_open.
int alb_port_set_interfaces(struct alb_port *port, const uint32_t *ifindexes);
// Some are others now. Errors: those of alb_groups_join_again.
int alb_port_change_interfaces(struct alb_port *port, const uint32_t *ifindexes);
// Stops hearing a multicast group (alb_groups_join has begun it).
void alb_port_leave_group(struct alb_port *port, const struct alb_addr *group);

// True if datagrams to UDP port 4791 reach this process: it has slot 0 or holds the port besides.
static inline bool alb_port_is_front(const struct alb_port *port)
{
    return port->slot == 0 || port->has_front;
}

// Takes port 4791 on every address if it is free, also on those that the host has lost, and may get again.
bool alb_port_take_front(struct alb_port *port);

// Between the two no port takes port 4791; the second in the parent and in the child.
void alb_ports_before_fork(void);
void alb_ports_after_fork(void);
