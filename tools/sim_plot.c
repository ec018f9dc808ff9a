// SPDX-License-Identifier: BSD-2-Clause
// Figures of a run: flow completion times as a distribution, slowdown by size, load of links over time. gnuplot draws.
#include "tools/command.h"
#include "tools/sim.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TITLE_MAX = 300,
    CURVE_POINTS = 1000,
    NAMES_MAX = 48, // that stand one above the other
    END_BYTES = 32, // of a figure
};

enum figure { FCT, SLOWDOWN, LINKS };

static const char *const figures[SIM_FIGURES] = {[FCT] = "fct", [SLOWDOWN] = "slowdown", [LINKS] = "links"};

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// A text in gnuplot's single quotes, in which the end of a line would end the command.
static void quote(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++)
        fputs(*text == '\'' ? "''" : (char[]){(char)(iscntrl((unsigned char)*text) ? '?' : *text), '\0'}, to);
    fputc('\'', to);
}

void sim_plot_path(const char *directory, const struct alb_result_of *result, uint32_t figure,
                   char path[SIM_FIGURE_PATH_MAX])
{
    char run[TITLE_MAX];
    const char *here = directory[0] == '/' ? "" : "./"; // gnuplot has a meaning for | and ~ at the beginning
    sim_title(result, true, run, sizeof(run));
    for (char *at = run; *at; at++) // as quoted
        *at = (char)(iscntrl((unsigned char)*at) ? '?' : *at);
    snprintf(path, SIM_FIGURE_PATH_MAX, "%s%s/%s-%s.svg", here, directory, run, figures[figure]);
}

static void begin_figure(FILE *to, const char *directory, const struct alb_result_of *result, enum figure figure,
                         const char *title)
{
    char run[TITLE_MAX], path[SIM_FIGURE_PATH_MAX];
    sim_plot_path(directory, result, figure, path);
    fputs("reset\nset terminal svg size 900,600 dynamic noenhanced background '#ffffff'\nset output ", to);
    quote(to, path);
    sim_title(result, false, run, sizeof(run));
    snprintf(path, sizeof(path), "%s: %s", run, title);
    fputs("\nset title ", to);
    quote(to, path);
    fputs("\nset grid\n", to);
}

// ---- figures --------------------------------------------------------------------------------------------------------

// gnuplot finds none for a single value, and says so.
static void give_range(FILE *to, char axis, double least, double most)
{
    if (least == most)
        fprintf(to, "set %crange [%.6g:%.6g]\n", axis, least / 2, most * 2);
}

static void plot_times(FILE *to, const char *directory, const struct alb_result_of *result)
{
    const struct alb_run *run = result->run;
    double *times = malloc((run->schedule.task_count + 1u) * sizeof(*times));
    uint32_t count = 0;
    alb_assert(times);
    for (uint32_t i = 0; i < run->schedule.task_count; i++)
        if (run->schedule.tasks[i].kind == ALB_TASK_SEND && alb_run_task_has_come(run, i))
            times[count++] = (double)(alb_run_task_end(run, i) - run->times[i].begun) / 1e6;
    qsort(times, count, sizeof(*times), compare);
    begin_figure(to, directory, result, FCT, "flow completion time");
    fputs("set logscale x\nset xlabel 'us'\nset ylabel 'part of flows'\nset yrange [0:1]\n", to);
    give_range(to, 'x', count ? times[0] : 1, count ? times[count - 1] : 1);
    fputs("plot '-' using 1:2 with steps lw 2 notitle\n", to);
    for (uint32_t i = 0; i < CURVE_POINTS && count; i++) {
        uint32_t at = (uint32_t)((uint64_t)i * (count - 1) / (CURVE_POINTS - 1));
        fprintf(to, "%.6g %.6g\n", ALB_MAX(times[at], 1e-6), (double)(at + 1) / count);
    }
    fputs(count ? "e\n" : "1 0\ne\n", to);
    free(times);
}

// Sizes stand side by side, by name: of the last one there is no figure.
static void name_sizes(FILE *to, const struct alb_summary *summary)
{
    char text[ALB_METRIC_TEXT_MAX];
    for (uint32_t i = 0; i < summary->bin_count; i++) {
        const struct alb_summary_bin *bin = &summary->bins[i];
        bool is_last = bin->bytes_max == UINT64_MAX;
        fprintf(to, "%s'%s' %" PRIu32, i ? ", " : "set xtics (",
                is_last ? "above" : alb_metric_format(ALB_METRIC_BYTES, (double)bin->bytes_max, text), i);
    }
    fputs(summary->bin_count ? ")\n" : "", to);
}

static void plot_slowdown(FILE *to, const char *directory, const struct alb_result_of *result)
{
    const struct alb_summary *summary = result->summary;
    begin_figure(to, directory, result, SLOWDOWN, "slowdown by size, against an idle network");
    fputs("set logscale y\nset xlabel 'flows of up to'\nset ylabel 'slowdown'\nset key left top\n", to);
    name_sizes(to, summary);
    fprintf(to, "set xrange [-0.5:%.1f]\n", ALB_MAX(summary->bin_count, 1u) - 0.5);
    if (summary->bin_count == 0)
        give_range(to, 'y', 1, 1);
    if (summary->bin_count == 1)
        give_range(to, 'y', summary->bins[0].slowdown.p50, summary->bins[0].slowdown.p999);
    fputs("plot '-' using 1:2 with linespoints lw 2 title 'P50', '-' using 1:2 with linespoints lw 2 title 'P99', "
          "'-' using 1:2 with linespoints lw 2 title 'P99.9'\n",
          to);
    for (uint32_t curve = 0; curve < 3; curve++) {
        for (uint32_t i = 0; i < summary->bin_count; i++) {
            const struct alb_summary_bin *bin = &summary->bins[i];
            const double values[] = {bin->slowdown.p50, bin->slowdown.p99, bin->slowdown.p999};
            fprintf(to, "%" PRIu32 " %.6g\n", i, values[curve]);
        }
        fputs(summary->bin_count ? "e\n" : "0 1\ne\n", to);
    }
}

// Links from those of hosts to those of cores, from bottom to top.
// By their names, or some of them, of rows that go tier by tier.
static void name_rows(FILE *to, const struct alb_topology *topology)
{
    uint32_t row = 0, step = (2 * topology->cable_count + NAMES_MAX - 1) / NAMES_MAX;
    char name[2 * ALB_TOPOLOGY_NAME_MAX + 8];
    fputs("set ytics font ',8' (", to);
    for (uint32_t tier = 0; tier < topology->tier_count; tier++) {
        for (uint32_t link = 0; link < 2 * topology->cable_count; link++) {
            const struct alb_topology_cable *cable = &topology->cables[link / 2];
            if (cable->tier != tier || row++ % step != 0)
                continue;
            snprintf(name, sizeof(name), "%s to %s", topology->nodes[link % 2 ? cable->b : cable->a].name,
                     topology->nodes[link % 2 ? cable->a : cable->b].name);
            fputs(row > 1 ? ", " : "", to);
            quote(to, name);
            fprintf(to, " %" PRIu32, row - 1);
        }
    }
    fputs(")\n", to);
}

// An image has two columns at least: the second of two that are alike is out of range.
static void plot_link(FILE *to, const struct alb_run *run, uint32_t link, uint32_t row)
{
    uint32_t columns = run->heat.columns;
    for (uint32_t c = 0; c < ALB_MAX(columns, 2U); c++)
        fprintf(to, "%" PRIu32 " %" PRIu32 " %.4g\n", c, row, alb_heat_load(run, ALB_MIN(c, columns - 1), link));
}

static void plot_links(FILE *to, const char *directory, const struct alb_result_of *result)
{
    const struct alb_run *run = result->run;
    const struct alb_heat *heat = &run->heat;
    double interval = (double)heat->interval / 1e6; // us
    uint32_t row = 0;
    begin_figure(to, directory, result, LINKS, "load of links, tier by tier");
    name_rows(to, &run->topology);
    fprintf(to,
            "unset grid\nset xlabel 'us'\nset cblabel 'part of its rate'\nset cbrange [0:1]\n"
            "set palette defined (0 '#f7fbff', 0.5 '#6baed6', 0.8 '#fd8d3c', 1 '#a50f15')\nset autoscale fix\n"
            "set xrange [0:%.9g]\nplot '-' using (($1+.5)*%.9g):2:3 with image notitle\n",
            heat->columns * interval, interval);
    for (uint32_t tier = 0; tier < run->topology.tier_count; tier++) {
        for (uint32_t link = 0; link < heat->links; link++) {
            const struct alb_topology_cable *cable = &run->topology.cables[link / 2];
            if (cable->tier != tier)
                continue;
            plot_link(to, run, link, row++);
        }
    }
    fputs("e\n", to);
}

int sim_plot_open(const char *directory)
{
    char inside[SIM_FIGURE_PATH_MAX];
    snprintf(inside, sizeof(inside), "%s/.", directory); // nothing but a folder has this
    if ((mkdir(directory, 0777) != 0 && errno != EEXIST) || access(inside, W_OK | X_OK) != 0)
        return command_error(COMMAND_FAILED, "sim", "%s: %s", directory, strerror(errno));
    return system("command -v gnuplot >/dev/null") == 0
               ? COMMAND_OK
               : command_error(COMMAND_FAILED, "sim", "--plot: gnuplot is not installed (Debian: gnuplot-nox)");
}

// gnuplot does not say why it cannot write one, and one of another run must not pass for one of this.
static int empty_figures(const char *directory, const struct alb_result_of *result)
{
    char path[SIM_FIGURE_PATH_MAX];
    for (uint32_t i = 0; i < SIM_FIGURES; i++) {
        sim_plot_path(directory, result, i, path);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0)
            return command_error(COMMAND_FAILED, "sim", "%s: %s", path, strerror(errno));
        close(fd);
    }
    return COMMAND_OK;
}

static bool is_whole(const char *path)
{
    char end[END_BYTES + 1] = "";
    FILE *file = fopen(path, "r");
    bool is_read = file && fseek(file, -END_BYTES, SEEK_END) == 0 && fread(end, 1, END_BYTES, file) == END_BYTES;
    if (file)
        fclose(file);
    return is_read && strstr(end, "</svg>");
}

// On a full disk gnuplot ends as if all were well.
static int check_figures(const char *directory, const struct alb_result_of *result)
{
    char path[SIM_FIGURE_PATH_MAX];
    for (uint32_t i = 0; i < SIM_FIGURES; i++) {
        sim_plot_path(directory, result, i, path);
        if (!is_whole(path))
            return command_error(COMMAND_FAILED, "sim", "%s: gnuplot has not written all of it; is there room for it?",
                                 path);
    }
    return COMMAND_OK;
}

int sim_plot(const char *directory, const struct alb_result_of *result)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction before;
    if (empty_figures(directory, result) != COMMAND_OK)
        return COMMAND_FAILED;
    FILE *gnuplot = popen("exec gnuplot >/dev/null", "w"); // to which it writes a figure that it cannot open
    if (!gnuplot)
        return command_error(COMMAND_FAILED, "sim", "gnuplot: %s", strerror(errno));
    sigaction(SIGPIPE, &ignored, &before); // it may end before it has read all
    plot_times(gnuplot, directory, result);
    plot_slowdown(gnuplot, directory, result);
    plot_links(gnuplot, directory, result);
    bool is_read = fflush(gnuplot) == 0 && !ferror(gnuplot);
    bool is_good = pclose(gnuplot) == 0 && is_read;
    sigaction(SIGPIPE, &before, NULL);
    return is_good ? check_figures(directory, result) : command_error(COMMAND_FAILED, "sim", "gnuplot failed");
}
