// SPDX-License-Identifier: BSD-2-Clause
// One self-contained page of a scenario's runs: topology with the load of its links at each moment, the load of all
// links over time, and tables. The page carries its data as JSON and a small program that draws.
#include "base/text.h"
#include "tools/command.h"
#include "tools/sim.h"
#include "tools/sim_output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_US 1e6

struct sim_page {
    struct sim_output output;
    const struct sim_file *of;
    FILE *file; // once there is a run to show
    uint32_t runs;
};

enum {
    BUSIEST = 20, // links in the table
};

static const char head[] = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>";

static const char style[] =
    "</title>\n"
    "<style>\n"
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 "
    "1em;color:#222;background:#fff}\n"
    "h1{font-size:1.5em}h2{font-size:1.2em;border-top:1px solid #ccc;padding-top:1em}h3{font-size:1em}\n"
    "table{border-collapse:collapse;margin:.5em 0}td,th{padding:.15em .7em;text-align:right;border-bottom:1px solid "
    "#eee}\n"
    "td:first-child,th:first-child{text-align:left}canvas{width:100%;border:1px solid #ddd;background:#fff}\n"
    "i{display:inline-block;width:12em;height:.7em;margin:0 .5em;background:linear-gradient(90deg,rgb(229,238,247),"
    "rgb(107,174,214) 50%,rgb(253,141,60) 80%,rgb(165,15,21))}"
    "input[type=range]{width:100%}.ok{color:#1a7f37}.bad{color:#b00020;font-weight:bold}.note{color:#666}\n"
    "</style></head><body>\n";

// Draws each run: nodes in rows, links coloured by load in the chosen column; below it all links over time.
static const char program[] =
    "<script>\n"
    "function colour(v){v=Math.max(0,Math.min(1,v));const s=[[0,229,238,247],[.5,107,174,214],[.8,253,141,60],"
    "[1,165,15,21]];let i=1;while(s[i][0]<v)i++;const a=s[i-1],b=s[i],t=(v-a[0])/(b[0]-a[0]);"
    "return`rgb(${[1,2,3].map(k=>Math.round(a[k]+t*(b[k]-a[k]))).join()})`}\n"
    "function load(r,l,c){return (r.heat.charCodeAt(l*r.columns+c)-40)/100}\n"
    "function place(r){const rows=[];r.nodes.forEach((n,i)=>{(rows[n[1]]=rows[n[1]]||[]).push(i)});const at=[];"
    "rows.forEach((row,y)=>row.forEach((n,i)=>{at[n]=[(i+.5)/row.length,1-(y+.5)/rows.length,1/row.length]}));"
    "return at}\n"
    // How far a cable's middle is off the straight line: parallel cables, and those past others in their row, show so.
    "function bend(a,b,twin,h){const past=a[1]==b[1]&&Math.abs(a[0]-b[0])>1.5*a[2]?h*.3:0;"
    "return past+(twin%2?1:-1)*Math.ceil(twin/2)*16}\n"
    "function cable(x,a,b,w,h,off){const dx=(b[0]-a[0])*w,dy=(b[1]-a[1])*h,d=Math.hypot(dx,dy)||1;x.beginPath();"
    "x.moveTo(a[0]*w,a[1]*h);x.quadraticCurveTo(a[0]*w+dx/2+off*Math.abs(dy)/d,"
    "a[1]*h+dy/2-off*Math.abs(dx)/d,b[0]*w,b[1]*h);x.stroke()}\n"
    "function net(r,cv,c){const x=cv.getContext('2d'),w=cv.width,h=cv.height,at=r.at,twins={};x.clearRect(0,0,w,h);"
    "r.cables.forEach((k,i)=>{const v=Math.max(load(r,2*i,c),load(r,2*i+1,c)),a=at[k[0]],b=at[k[1]],"
    "ends=k[0]+'-'+k[1],twin=twins[ends]=(ends in twins?twins[ends]+1:0);x.strokeStyle=colour(v);x.lineWidth=v>.02?2:1;"
    "cable(x,a,b,w,h,bend(a,b,twin,h))});x.font='10px sans-serif';x.textAlign='center';"
    "const wide={};r.nodes.forEach(n=>{wide[n[1]]=Math.max(wide[n[1]]||0,x.measureText(n[0]).width)});"
    "r.nodes.forEach((n,i)=>{x.fillStyle=n[1]?'#333':'#888';"
    "x.fillRect(at[i][0]*w-3,at[i][1]*h-3,6,6);if(wide[n[1]]+4<at[i][2]*w){"
    "x.fillText(n[0],at[i][0]*w,at[i][1]*h+(n[1]?-7:14))}})}\n"
    "function heat(r,cv,c){const x=cv.getContext('2d'),n=r.order.length,w=cv.width/r.columns,h=cv.height/n;"
    "r.order.forEach((l,y)=>{for(let i=0;i<r.columns;i++){x.fillStyle=colour(load(r,l,i));"
    "x.fillRect(i*w,cv.height-(y+1)*h,Math.ceil(w),Math.ceil(h))}});x.strokeStyle='#000';"
    "x.strokeRect(c*w,0,w,cv.height);x.fillStyle='#000';x.font='11px sans-serif';let tier=-1;"
    "r.order.forEach((l,y)=>{const t=r.cables[l>>1][2];if(t!=tier){if(y)x.fillRect(0,cv.height-y*h,cv.width,1);"
    "x.fillText('tier '+t,3,cv.height-y*h-4)}tier=t})}\n"
    "function us(ps){return+(ps/1e6).toFixed(3)}\n"
    "runs.forEach((r,i)=>{r.at=place(r);r.order=[];r.cables.map((k,j)=>[k[2],j]).sort((a,b)=>a[0]-b[0]||a[1]-b[1])"
    ".forEach(k=>{r.order.push(2*k[1],2*k[1]+1)});const q=s=>document.getElementById(s+i),slide=q('t'),cv=q('n'),"
    "hv=q('h');function draw(){const c=+slide.value;net(r,cv,c);heat(r,hv,c);"
    "q('l').textContent=`${us(c*r.interval)} to ${us(Math.min((c+1)*r.interval,r.end))} us`}"
    "slide.oninput=draw;hv.onclick=e=>{slide.value=Math.floor(e.offsetX/hv.clientWidth*r.columns);draw()};"
    "hv.onmousemove=e=>{const y=r.order[Math.floor((1-e.offsetY/hv.clientHeight)*r.order.length)],"
    "c=Math.floor(e.offsetX/hv.clientWidth*r.columns);if(y===undefined||c>=r.columns)return;const k=r.cables[y>>1];"
    "hv.title=`${r.nodes[k[y&1?1:0]][0]} to ${r.nodes[k[y&1?0:1]][0]}: ${Math.round(load(r,y,c)*100)} %`};"
    "slide.value=Math.floor(r.columns/2);draw()})\n"
    "</script>\n";

static void text(FILE *to, const char *from)
{
    while (*from) {
        size_t bytes = alb_text_character(from);
        if (bytes == 0)
            fputs("&#xfffd;", to);
        else if (*from == '<')
            fputs("&lt;", to);
        else if (*from == '>')
            fputs("&gt;", to);
        else if (*from == '&')
            fputs("&amp;", to);
        else if (*from == '"')
            fputs("&quot;", to);
        else
            fwrite(from, 1, bytes, to);
        from += ALB_MAX(bytes, (size_t)1);
    }
}

int sim_page_open(struct sim_page **page, const char *path, const struct sim_file *file)
{
    static struct sim_page own;
    own = (struct sim_page){.of = file};
    int error = sim_output_open(&own.output, path);
    if (error)
        return command_error(COMMAND_FAILED, "sim", "%s: %s", path, strerror(error));
    *page = &own;
    return COMMAND_OK;
}

static void write_title(FILE *to, const struct sim_file *file)
{
    fputs(head, to);
    text(to, file->name);
    fputs(style, to);
    fputs("<h1>", to);
    text(to, sim_file_says(file, "title") ? sim_file_says(file, "title") : file->name);
    fputs("</h1>\n", to);
    static const char *const keys[] = {"source", "expected"};
    for (size_t i = 0; i < ALB_COUNT(keys); i++) {
        if (!sim_file_says(file, keys[i]))
            continue;
        fprintf(to, "<p><b>%s:</b> ", keys[i]);
        text(to, sim_file_says(file, keys[i]));
        fputs("</p>\n", to);
    }
    fputs("<script>const runs=[]</script>\n", to);
}

// ---- tables ---------------------------------------------------------------------------------------------------------

static void write_times(FILE *to, const char *name, const struct alb_summary_times *times, bool is_none,
                        enum alb_metric_unit unit)
{
    const double values[] = {times->min, times->mean, times->p50, times->p95, times->p99, times->p999, times->max};
    char formatted[ALB_METRIC_TEXT_MAX];
    fputs("<tr><td>", to);
    text(to, name);
    fputs("</td>", to);
    for (size_t i = 0; i < ALB_COUNT(values); i++)
        fprintf(to, "<td>%s</td>", alb_metric_format(unit, is_none ? NAN : values[i], formatted));
    fputs("</tr>\n", to);
}

static void write_flows(FILE *to, const struct alb_summary *summary)
{
    char name[100];
    fputs("<h3>Flows</h3><table><tr><th></th><th>min</th><th>mean</th><th>P50</th><th>P95</th><th>P99</th>"
          "<th>P99.9</th><th>max</th></tr>\n",
          to);
    for (uint32_t i = 0; i < summary->part_count; i++) {
        const struct alb_summary_part *part = &summary->parts[i];
        snprintf(name, sizeof(name), "%s: completion time", part->name);
        write_times(to, name, &part->fct, part->done == 0, ALB_METRIC_NS);
        snprintf(name, sizeof(name), "%s: slowdown", part->name);
        write_times(to, name, &part->slowdown, part->done == 0, ALB_METRIC_NUMBER);
    }
    for (uint32_t i = 0; i < summary->bin_count; i++) {
        char size[ALB_METRIC_TEXT_MAX];
        bool is_last = summary->bins[i].bytes_max == UINT64_MAX;
        alb_metric_format(ALB_METRIC_BYTES, (double)summary->bins[i].bytes_max, size);
        snprintf(name, sizeof(name), "slowdown of %" PRIu64 " flows %s%s", summary->bins[i].flows,
                 is_last ? "above all these" : "of up to ", is_last ? "" : size);
        write_times(to, name, &summary->bins[i].slowdown, false, ALB_METRIC_NUMBER);
    }
    fputs("</table>\n", to);
}

// Of each workload; all together are among the figures.
static void write_workloads(FILE *to, const struct alb_summary *summary)
{
    char formatted[ALB_METRIC_TEXT_MAX];
    fputs("<h3>Workloads</h3><table><tr><th></th><th>done</th><th>time</th><th>goodput</th><th>ideal time</th>"
          "<th>by the ideal</th></tr>\n",
          to);
    for (uint32_t i = 0; i < summary->part_count; i++) {
        const struct alb_summary_part *part = &summary->parts[i];
        bool has_ideal = part->is_collective && part->time > 0;
        fputs("<tr><td>", to);
        text(to, part->name);
        fprintf(to, "</td><td>%.0f of %.0f</td>", part->done, part->flows);
        fprintf(to, "<td>%s</td>", alb_metric_format(ALB_METRIC_NS, part->time > 0 ? part->time : NAN, formatted));
        fprintf(to, "<td>%s</td>", alb_metric_format(ALB_METRIC_BITS_PER_S, part->goodput, formatted));
        fprintf(to, "<td>%s</td>", alb_metric_format(ALB_METRIC_NS, has_ideal ? part->ideal : NAN, formatted));
        fprintf(to, "<td>%s</td></tr>\n",
                alb_metric_format(ALB_METRIC_NUMBER, has_ideal ? part->over_ideal : NAN, formatted));
    }
    fputs("</table>\n", to);
}

static void write_metrics(FILE *to, const struct alb_summary *summary)
{
    fputs("<h3>Figures</h3><table>\n", to);
    for (uint32_t i = 0; i < alb_metric_count; i++) {
        char formatted[ALB_METRIC_TEXT_MAX];
        double value;
        if (!alb_metric_value(summary, &alb_metrics[i], NULL, &value) || value == 0 ||
            strncmp(alb_metrics[i].name, "fct_", 4) == 0 || strncmp(alb_metrics[i].name, "slowdown_", 9) == 0)
            continue;
        fprintf(to, "<tr><td>%s</td><td>%s</td><td style=\"text-align:left\">", alb_metrics[i].name,
                alb_metric_format(alb_metrics[i].unit, value, formatted));
        text(to, alb_metrics[i].text);
        fputs("</td></tr>\n", to);
    }
    fputs("</table>\n", to);
}

struct busy {
    uint32_t link;
    double used;
};

static int compare_busy(const void *left, const void *right)
{
    const struct busy *a = left, *b = right;
    if (a->used != b->used)
        return a->used > b->used ? -1 : 1;
    return a->link < b->link ? -1 : 1;
}

static void write_link(FILE *to, const struct alb_run *run, const struct busy *busy)
{
    const struct alb_topology_cable *cable = &run->topology.cables[busy->link / 2];
    const struct alb_topology_node *nodes = run->topology.nodes;
    bool is_back = busy->link % 2;
    struct alb_cluster_link_stats stats;
    char paused[ALB_METRIC_TEXT_MAX], peak[ALB_METRIC_TEXT_MAX];
    alb_cluster_link_stats(run->cluster, busy->link, &stats);
    fputs("<tr><td>", to);
    text(to, nodes[is_back ? cable->b : cable->a].name);
    fputs(" to ", to);
    text(to, nodes[is_back ? cable->a : cable->b].name);
    fprintf(to,
            "</td><td>%.1f %%</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64
            "</td><td>%s</td><td>%s</td></tr>\n",
            busy->used * 100, stats.packets, stats.dropped, stats.lost, stats.marked,
            alb_metric_format(ALB_METRIC_NS, (double)stats.paused / 1000, paused),
            alb_metric_format(ALB_METRIC_BYTES, (double)stats.queued_bytes_peak, peak));
}

static void write_links(FILE *to, const struct alb_run *run)
{
    uint32_t count = 2 * run->topology.cable_count;
    struct busy *busy = malloc((count + 1u) * sizeof(*busy));
    alb_assert(busy);
    for (uint32_t link = 0; link < count; link++)
        busy[link] = (struct busy){link, alb_summary_link_used(run, link)};
    qsort(busy, count, sizeof(*busy), compare_busy);
    fputs("<h3>Busiest links</h3><table><tr><th>link</th><th>used</th><th>packets</th><th>dropped</th><th>lost</th>"
          "<th>marked</th><th>paused</th><th>longest queue</th></tr>\n",
          to);
    for (uint32_t i = 0; i < ALB_MIN(count, (uint32_t)BUSIEST); i++)
        write_link(to, run, &busy[i]);
    fputs("</table>\n", to);
    free(busy);
}

// ---- what is drawn --------------------------------------------------------------------------------------------------

// Each node's row is how many cables it is away from the nearest host.
static uint32_t *find_rows(const struct alb_topology *topology)
{
    uint32_t *row = malloc(topology->node_count * sizeof(*row));
    alb_assert(row);
    for (uint32_t node = 0; node < topology->node_count; node++)
        row[node] = node < topology->host_count ? 0 : topology->node_count;
    for (bool is_settled = false; !is_settled;) {
        is_settled = true;
        for (uint32_t c = 0; c < topology->cable_count; c++) {
            uint32_t *a = &row[topology->cables[c].a], *b = &row[topology->cables[c].b];
            uint32_t *far = *a < *b ? b : a, next = ALB_MIN(*a, *b) + 1;
            if (*far > next) {
                *far = next;
                is_settled = false;
            }
        }
    }
    return row;
}

// Loads as characters from '(' (none) on, one for each percent, so that the page stays small.
static void write_heat(FILE *to, const struct alb_run *run)
{
    const struct alb_heat *heat = &run->heat;
    fputc('"', to);
    for (uint32_t link = 0; link < heat->links; link++) {
        for (uint32_t c = 0; c < heat->columns; c++) {
            unsigned code = 40 + (unsigned)ALB_MIN(alb_heat_load(run, c, link) * 100 + 0.5, 200.0);
            if (code == '<' || code == '\\' || code >= 127)
                fprintf(to, "\\u%04x", code);
            else
                fputc((int)code, to);
        }
    }
    fputc('"', to);
}

static void write_data(FILE *to, const struct alb_run *run)
{
    uint32_t *rows = find_rows(&run->topology);
    fprintf(to, "<script>runs.push({interval:%" PRIu64 ",end:%" PRIu64 ",columns:%" PRIu32 ",nodes:[",
            run->heat.interval, run->heat.end, run->heat.columns);
    for (uint32_t node = 0; node < run->topology.node_count; node++) {
        fputs(node ? ",[" : "[", to);
        alb_result_string(to, run->topology.nodes[node].name);
        fprintf(to, ",%" PRIu32 "]", rows[node]);
    }
    free(rows);
    fputs("],cables:[", to);
    for (uint32_t c = 0; c < run->topology.cable_count; c++)
        fprintf(to, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", c ? "," : "", run->topology.cables[c].a,
                run->topology.cables[c].b, run->topology.cables[c].tier);
    fputs("],heat:", to);
    write_heat(to, run);
    fputs("})</script>\n", to);
}

int sim_page_add(struct sim_page *page, const struct alb_result_of *result)
{
    const struct alb_heat *heat = &result->run->heat;
    char title[300];
    uint32_t n = page->runs++;
    page->file = sim_output_begin(&page->output);
    if (n == 0)
        write_title(page->file, page->of);
    sim_title(result, false, title, sizeof(title));
    fputs("<h2>", page->file);
    text(page->file, title);
    fprintf(page->file, ", seed %" PRIu64 ": %s</h2>\n", result->run->scenario->seed,
            alb_result_end_name(result->run->end));
    fprintf(page->file,
            "<h3>Topology, links by load <span class=\"note\" id=\"l%" PRIu32 "\"></span></h3>\n"
            "<p class=\"note\">idle<i></i>full: the busier direction of each cable, as part of its rate</p>\n"
            "<canvas id=\"n%" PRIu32 "\" width=\"1100\" height=\"420\"></canvas>\n"
            "<input type=\"range\" id=\"t%" PRIu32 "\" min=\"0\" max=\"%" PRIu32 "\">\n"
            "<h3>All links over time <span class=\"note\">hosts' links at the bottom; click to choose a moment</span>"
            "</h3>\n<canvas id=\"h%" PRIu32 "\" width=\"1100\" height=\"420\"></canvas>\n"
            "<p class=\"note\">from left to right: 0 to %.10g us</p>\n",
            n, n, n, ALB_MAX(heat->columns, 1u) - 1, n, (double)heat->end / PS_PER_US);
    write_data(page->file, result->run);
    write_flows(page->file, result->summary);
    write_workloads(page->file, result->summary);
    write_metrics(page->file, result->summary);
    write_links(page->file, result->run);
    return COMMAND_OK;
}

static void write_end(FILE *to, const struct sim_file *file, const struct sim_outcome *outcomes, uint32_t count)
{
    char *lines = NULL;
    size_t size;
    FILE *memory = open_memstream(&lines, &size);
    alb_assert(memory);
    sim_check(file, outcomes, count, memory);
    fclose(memory);
    fputs("<h2>Expectations</h2>\n<ul>\n", to);
    for (char *rest = lines, *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (*line == '\0')
            continue;
        fprintf(to, "<li class=\"%s\">", strncmp(line, "ok", 2) == 0 ? "ok" : "bad");
        text(to, line);
        fputs("</li>\n", to);
    }
    free(lines);
    fputs("</ul>\n", to);
    fputs(program, to);
    fputs("</body></html>\n", to);
}

int sim_page_close(struct sim_page *page, const struct sim_file *file, const struct sim_outcome *outcomes,
                   uint32_t count)
{
    if (page->file)
        write_end(page->file, file, outcomes, count);
    int error = sim_output_close(&page->output);
    return error ? command_error(COMMAND_FAILED, "sim", "%s: %s", page->output.path, strerror(error)) : COMMAND_OK;
}
