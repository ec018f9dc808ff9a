// SPDX-License-Identifier: BSD-2-Clause
// mpi_bench KIND BYTES ITERATIONS: how long a ping-pong (between ranks 0 and 1) or an allreduce takes. Rank 0 prints
// one line of JSON: half a round trip, or one allreduce, in microseconds. Built by stacks.py with each MPI's own
// compiler driver.
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ping_pong(char *memory, int bytes, int rank)
{
    if (rank > 1)
        return;
    if (rank == 0)
        MPI_Send(memory, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(memory, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(memory, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void all_reduce(char *memory, int bytes, int rank)
{
    (void)rank;
    MPI_Allreduce(MPI_IN_PLACE, memory, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4) {
        fprintf(stderr, "usage: mpi_bench pingpong|allreduce BYTES ITERATIONS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int is_pingpong = strcmp(argv[1], "pingpong") == 0, bytes = atoi(argv[2]), iterations = atoi(argv[3]);
    void (*step)(char *, int, int) = is_pingpong ? ping_pong : all_reduce;
    char *memory = calloc(1, (size_t)bytes + 1);
    for (int i = 0; i < iterations / 10 + 1; i++)
        step(memory, bytes, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        step(memory, bytes, rank);
    double us = (MPI_Wtime() - began) * 1e6 / iterations;
    if (rank == 0)
        printf("{\"us\": %.3f}\n", is_pingpong ? us / 2 : us);
    free(memory);
    MPI_Finalize();
    return 0;
}
